// Package version says which versions the server has and stands for.
package version

const (
	// Number is the version of atomredis.
	Number = "0.1.0"
	// Redis is the version of Redis whose behaviour the server has, and that it tells clients.
	Redis = "7.4.0"
)
