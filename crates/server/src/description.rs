use utoipa::openapi::OpenApi;

/// The OpenAPI description of Driftline's own routes, those of IDs included.
pub fn api_description() -> OpenApi {
    let mut description = driftline_api::api_description();
    description.merge(driftline_id_service::api_description());
    description
}
