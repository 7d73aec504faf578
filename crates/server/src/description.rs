use utoipa::openapi::{OpenApi, security::SecurityRequirement};

/// The OpenAPI description of all that a server with an ID service serves.
pub fn api_description() -> OpenApi {
    let mut ids = driftline_id_service::api_description();
    for path in ids.paths.paths.values_mut() {
        let operations = [&mut path.get, &mut path.post].into_iter();
        for operation in operations.flatten() {
            operation.tags = Some(vec!["ids".to_owned()]);
            let none: [&str; 0] = [];
            operation.security = Some(vec![SecurityRequirement::new("operator", none)]);
        }
    }
    let mut description = driftline_api::api_description();
    description.merge(ids);
    description
}
