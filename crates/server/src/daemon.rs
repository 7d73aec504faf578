//! A server's parts, started and stopped in order.

use std::sync::Arc;

use driftline_api::{
    App, OwnInstance,
    auth::{Authorization, CallerCache, refuse_other_sites},
    feed::Feed,
    find::SearchBudget,
    people::People,
    router,
    transport::{Address, TrustedProxies, refuse_undeclared_proxies},
};
use driftline_id_service::{RunningIdService, routes};
use driftline_mirror::{
    InstanceWatch, Pollers, PollersOptions, Threads, UpstreamAccess,
    refresh::{RefreshOptions, Refreshers},
};
use driftline_store::{Store, Viewer};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;
use url::Url;

use crate::{
    LocalMirror,
    admin::{DEFAULT_SOURCES_PER_ACCOUNT, Host, ProcessStatus},
    api_description,
};

/// A running server without its listeners.
pub struct Daemon {
    store: Store,
    feed: Feed,
    callers: CallerCache,
    access: UpstreamAccess,
    pollers: Pollers,
    instances: InstanceWatch,
    refreshers: Option<Refreshers>,
    ids: Option<RunningIdService>,
    ready: watch::Sender<bool>,
    process: ProcessStatus,
    sources_per_account: u32,
    public_base: Option<Url>,
}

/// How a server answers HTTP requests.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// What `/metrics` shows.
    pub metrics: Option<PrometheusHandle>,
    /// The proxies before it.
    pub proxies: TrustedProxies,
    /// What the server says of itself.
    pub own: OwnInstance,
    /// Who may do more than read public posts.
    pub authorization: Authorization,
    /// What people's accounts, tokens and pages need.
    pub people: People,
    /// Whether IDs are issued to any client.
    pub ids_for_anyone: bool,
}

impl Daemon {
    /// Begins to read sources and, with options for it, to refresh posts. The ID service runs already.
    pub fn start(
        store: Store,
        access: UpstreamAccess,
        pollers: PollersOptions,
        refresh: Option<RefreshOptions>,
        ids: Option<RunningIdService>,
    ) -> Self {
        let process = ProcessStatus {
            node: pollers.membership.as_ref().map(|_| pollers.holder.clone()),
            ..ProcessStatus::started("serve")
        };
        let pollers = Pollers::start(store.clone(), access.clone(), pollers);
        let instances = InstanceWatch::start(store.clone(), access.clone(), pollers.clone());
        let refreshers = refresh.map(|mut options| {
            options.sharing = Some(pollers.sharing());
            Refreshers::start(store.clone(), access.clone(), options)
        });
        Self {
            feed: Feed::new(store.clone()),
            callers: CallerCache::default(),
            store,
            access,
            pollers,
            instances,
            refreshers,
            ids,
            ready: watch::channel(true).0,
            process,
            sources_per_account: DEFAULT_SOURCES_PER_ACCOUNT,
            public_base: None,
        }
    }

    /// The same, where an account may have so many sources of its own.
    #[must_use]
    pub fn with_sources_per_account(mut self, sources: u32) -> Self {
        self.sources_per_account = sources;
        self
    }

    /// The same, where clients use this `public_url`.
    #[must_use]
    pub fn with_public_base(mut self, public_base: Option<Url>) -> Self {
        self.public_base = public_base;
        self
    }

    /// Where the operator's commands are executed.
    pub fn host(&self) -> Host {
        Host {
            store: self.store.clone(),
            feed: self.feed.clone(),
            callers: self.callers.clone(),
            pollers: Some(self.pollers.clone()),
            refreshers: self.refreshers.clone(),
            access: Some(self.access.clone()),
            store_disk: self.access.store_disk.clone(),
            ids: self.ids.as_ref().map(|ids| ids.service.issuer().clone()),
            process: Some(self.process.clone()),
            sources_per_account: self.sources_per_account,
            address: Address::configured(self.public_base.as_ref()),
            viewer: Viewer::Operator,
            account: None,
        }
    }

    /// The routes of all parts.
    pub fn router(&self, options: HttpOptions) -> axum::Router {
        let (authorization, is_public) = (options.authorization, self.public_base.is_some());
        let mut people = options.people;
        // The operator's commands have to reach them.
        people.callers = self.callers.clone();
        let app = App {
            store: self.store.clone(),
            feed: self.feed.clone(),
            mirror: Arc::new(LocalMirror {
                store: self.store.clone(),
                host: self.host(),
                policies: self.access.policies.clone(),
                sources: self.pollers.health(),
                store_disk: self.access.store_disk.clone(),
                threads: Some(Threads::new(self.store.clone(), self.access.clone())),
            }),
            description: api_description(),
            metrics: options.metrics,
            public_base: self.public_base.clone(),
            proxies: options.proxies,
            own: options.own,
            authorization: authorization.clone(),
            people,
            search_budget: SearchBudget::REQUEST,
            store_fault: self.access.store_fault.clone(),
            ready: self.ready.subscribe(),
        };
        let router = router(app);
        let Some(ids) = &self.ids else { return router };
        let ids = routes(&ids.service);
        let ids = match options.ids_for_anyone {
            true => refuse_other_sites(ids),
            false => authorization.guard(ids),
        };
        router.merge(match is_public {
            true => ids,
            false => refuse_undeclared_proxies(ids),
        })
    }

    /// Waits until another process holds the ID service's node; for ever without an ID service.
    pub async fn id_node_lost(&self) {
        match &self.ids {
            Some(ids) => ids.service.lost().await,
            None => std::future::pending().await,
        }
    }

    /// Stops the work, and no longer reports itself ready. HTTP goes on: requests in flight are answered,
    /// but streams end.
    pub async fn wind_down(&self) {
        self.ready.send_replace(false);
        self.feed.end();
        let refreshers_stop = async {
            if let Some(refreshers) = &self.refreshers {
                refreshers.stop().await;
            }
        };
        tokio::join!(self.pollers.stop(), self.instances.stop(), refreshers_stop);
    }

    /// Stops all parts. The store stays open.
    pub async fn stop(self) {
        self.wind_down().await;
        if let Some(ids) = self.ids {
            ids.stop().await;
        }
    }
}
