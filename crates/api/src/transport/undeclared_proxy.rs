use axum::{
    Router,
    extract::Request,
    http::HeaderMap,
    middleware::{self, Next},
    response::IntoResponse as _,
};

use super::ApiError;

/// Makes a server without a `public_url` refuse what a proxy forwards. Such a server takes itself for one that only
/// its own machine reaches, and every client for one of that machine.
pub fn refuse_undeclared_proxies(router: Router) -> Router {
    router.layer(middleware::from_fn(async |request: Request, next: Next| {
        if is_forwarded(request.headers()) {
            return ApiError::Forbidden(REFUSED).into_response();
        }
        next.run(request).await
    }))
}

fn is_forwarded(headers: &HeaderMap) -> bool {
    FORWARDING.iter().any(|name| headers.contains_key(*name))
}

/// What proxies add to the requests that they forward.
const FORWARDING: [&str; 5] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];
const REFUSED: &str = "A proxy forwarded this request, and this server does not know of one; set server.public_url to the address that clients use, and start the server again";
