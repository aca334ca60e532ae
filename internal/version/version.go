// Package version says which versions the server has and stands for.
package version

const (
	// Number is the version of atomredis.
	Number = "0.1.0"
	// Redis is the version of Redis whose commands the server has, all of them, and that it tells clients. Those of Redis 8
	// are here but for what docs/compatibility.md names, above all the query engine.
	Redis = "7.4.0"
)
