//! The messages of remote write 1.0, as far as samples need them (`prometheus.WriteRequest`).

/// The body of a request.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WriteRequest {
    /// The series.
    #[prost(message, repeated, tag = "1")]
    pub timeseries: Vec<TimeSeries>,
}

/// Samples of one series.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TimeSeries {
    /// What it is, in the order of the names.
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<Label>,
    /// In the order of their times.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
}

/// One label.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Label {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// One value.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Sample {
    /// The value.
    #[prost(double, tag = "1")]
    pub value: f64,
    /// Milliseconds since the epoch.
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
}
