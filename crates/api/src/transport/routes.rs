use std::convert::Infallible;

use axum::{
    Router,
    handler::Handler,
    response::IntoResponse,
    routing::{MethodFilter, Route, on},
};
use tower::{Layer, Service};
use utoipa::{
    Path,
    // What `#[utoipa::path]` implements for the collection of its types.
    __dev::{SchemaReferences, Tags},
    openapi::{Components, HttpMethod, OpenApi, PathItem, Paths},
};

/// Routes with their description: none can be served without one, and none described that is not served.
#[derive(Clone)]
pub struct Routes<S = ()> {
    router: Router<S>,
    description: OpenApi,
}

impl<S: Clone + Send + Sync + 'static> Default for Routes<S> {
    fn default() -> Self {
        Self {
            router: Router::new(),
            description: OpenApi::default(),
        }
    }
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No routes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route: its methods and its path are those that `#[utoipa::path]` describes.
    #[must_use]
    pub fn add<P, H, T>(mut self, _described: P, handler: H) -> Self
    where
        P: Path + Tags<'static> + SchemaReferences,
        H: Handler<T, S>,
        T: 'static,
    {
        let (path, methods) = (P::path(), P::methods());
        for method in &methods {
            let route = on(filter(method), handler.clone());
            self.router = self.router.route(&path, route);
        }
        let mut operation = P::operation();
        let tags = P::tags().into_iter().map(str::to_owned);
        operation.tags.get_or_insert_default().extend(tags);
        let mut schemas = Vec::new();
        P::schemas(&mut schemas);
        let mut described = OpenApi::default();
        let mut paths = Paths::new();
        paths.add_path_operation(path, methods, operation);
        described.paths = paths;
        let mut components = Components::new();
        components.schemas.extend(schemas);
        described.components = Some(components);
        self.description.merge(described);
        self
    }

    /// Adds other routes.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.description.merge(other.description);
        self.router = self.router.merge(other.router);
        self
    }

    /// Applies a layer to the routes so far.
    #[must_use]
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<axum::extract::Request> + Clone + Send + Sync + 'static,
        <L::Service as Service<axum::extract::Request>>::Response: IntoResponse + 'static,
        <L::Service as Service<axum::extract::Request>>::Error: Into<Infallible> + 'static,
        <L::Service as Service<axum::extract::Request>>::Future: Send + 'static,
    {
        self.router = self.router.layer(layer);
        self
    }

    /// The description of each route.
    #[must_use]
    pub fn describe(mut self, mut change: impl FnMut(&mut PathItem)) -> Self {
        self.description.paths.paths.values_mut().for_each(&mut change);
        self
    }

    /// The routes, and their description.
    pub fn split(self) -> (Router<S>, OpenApi) {
        (self.router, self.description)
    }
}

fn filter(method: &HttpMethod) -> MethodFilter {
    match method {
        HttpMethod::Get => MethodFilter::GET,
        HttpMethod::Put => MethodFilter::PUT,
        HttpMethod::Post => MethodFilter::POST,
        HttpMethod::Delete => MethodFilter::DELETE,
        HttpMethod::Options => MethodFilter::OPTIONS,
        HttpMethod::Head => MethodFilter::HEAD,
        HttpMethod::Patch => MethodFilter::PATCH,
        _ => MethodFilter::TRACE,
    }
}
