// Package transfer moves the data of a server as files of a Redis.
//
// An [Exporter] writes all data, or keys, or functions, as they are at one moment, while commands go on: as an RDB file
// or as an append-only file. Followers get their copies from it too.
//
// An [Importer] reads RDB files, append-only files, with an RDB file at their head or without, their manifests and
// directories with such, into a keyspace that is empty. It also puts an RDB file in the place of all data, as replicas do
// with a copy of their master.
//
// A [Dump] is the RDB file that SAVE and BGSAVE write. [Backups] are what BACKUP makes: the data of one moment, and the
// commands since, until the backup is sealed.
//
// The package knows neither sessions nor followers. What it needs of the server is [Source], [Replayer], [Storage] and [Stream].
package transfer
