// The interface of the Snowflake service of 2010. Its methods declare no `throws`.

exception InvalidSystemClock {
  1: string message,
}

exception InvalidUserAgentError {
  1: string message,
}

service Snowflake {
  i64 get_worker_id()
  i64 get_timestamp()
  i64 get_id(1: string useragent)
  i64 get_datacenter_id()
}

// A later service, which has a method that the one of 2010 has not.
service Later extends Snowflake {
  i64 get_weather()
}
