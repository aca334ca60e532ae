// Package version says which versions the server has and stands for.
package version

const (
	// Number is the version of atomredis.
	Number = "0.1.0"
	// Redis is the version of Redis whose commands the server has, all of them but the query engine's, and that it tells
	// clients. A test of package server compares the table of commands with that of Redis.
	Redis = "8.10.0"
	// RedisNumber is that as scripts see it as a number: a byte for each part.
	RedisNumber = 8<<16 | 10<<8
)
