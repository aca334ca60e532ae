// Package transfer moves the data of a server as files of a Redis.
//
// An [Exporter] writes all data, or keys, or functions, as they are at one moment, while commands go on: as an RDB file
// or as an append-only file. Followers get their copies from it too.
//
// The package knows neither sessions nor followers. What it needs of the server is [Source].
package transfer
