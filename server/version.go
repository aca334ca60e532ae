package server

// Version is the version of atomredis.
const Version = "0.1.0"

// RedisVersion is the version of Redis whose behaviour the server has, and that it tells clients.
const RedisVersion = "7.4.0"
