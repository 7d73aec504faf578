use utoipa::openapi::{OpenApi, security::SecurityRequirement};

/// The OpenAPI description of all that a server with an ID service serves.
pub fn api_description() -> OpenApi {
    let mut ids = driftline_id_service::api_description();
    for path in ids.paths.paths.values_mut() {
        let operations = [&mut path.get, &mut path.post].into_iter();
        for operation in operations.flatten() {
            // The server guards them, unless it is configured to give IDs to anyone.
            let none: [&str; 0] = [];
            operation.security = Some(vec![SecurityRequirement::new("operator", none)]);
        }
    }
    driftline_api::api_description([ids])
}
