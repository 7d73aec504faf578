use crate::{Service, thrift::Listener};

/// The ID service and, where clients of the service of 2010 are listened to, its Thrift listener.
pub struct RunningIdService {
    /// The service.
    pub service: Service,
    /// The Thrift listener.
    pub thrift: Option<Listener>,
}

impl RunningIdService {
    /// Answers what has been requested, then releases the node.
    pub async fn stop(self) {
        if let Some(thrift) = self.thrift {
            thrift.stop().await;
        }
        self.service.stop().await;
    }
}
