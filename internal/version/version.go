// Package version has the version of the server and that of the Redis it is compatible with.
package version

const (
	// Number is the version of atomredis.
	Number = "0.1.0"
	// Redis is the version of Redis whose commands the server has (the query engine's may be different), and that it
	// reports to clients. A test of package server compares the table of commands with that of Redis.
	Redis = "8.10.0"
	// Valkey is the version of Valkey whose files the server reads.
	Valkey = "9.1.0"
	// RedisNumber is the same version as a number for scripts: a byte for each part.
	RedisNumber = 8<<16 | 10<<8
)
