// Package transfer moves the data of a server as files of a Redis.
//
// An [Exporter] writes all data, or keys, or functions, as they are at one moment, while commands go on: as an RDB file
// or as an append-only file. It reads a snapshot of the keyspace. Followers and members of a group get their copies from
// it too, and learn the moment under the guard of the snapshot (Copy.At).
//
// An [Importer] reads RDB files, append-only files, with an RDB file at their head or without, their manifests and
// directories with such, into a keyspace that is empty, before the server serves. A file that cannot be read as a whole is an
// error, but for the cut end that Redis leaves when it is killed. It also puts an RDB file in the place of all data, as
// replicas do with a copy of their master. It gives its guard back now and then, so that others can be told that the
// server is loading.
//
// A [Dump] is the RDB file that SAVE and BGSAVE write. [Backups] are what BACKUP makes: the data of one moment, and the
// commands since, until the backup is sealed. Both write a file whole and have its name on the disk before they say so.
//
// The package knows neither sessions nor followers. What it needs of the server is [Source], [Replayer], [Storage] and
// [Stream].
package transfer
