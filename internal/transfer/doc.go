// Package transfer imports and exports the data of a server as files of a Redis.
//
// An [Exporter] writes all data, or only keys, or only functions, as they are at one moment, to an RDB file or an
// append-only file. Commands continue meanwhile. It reads a snapshot of the keyspace. It also makes the copies for
// followers and members of a group, which get the position of the moment from a call under the snapshot's guard
// (Copy.At).
//
// An [Importer] reads RDB files, append-only files (with or without an RDB file at their start), their manifests,
// and directories with such files, into an empty keyspace before the server serves. A file that cannot be read
// completely is an error, with two exceptions: the last command may be incomplete because Redis was killed, and if the
// configuration allows it, values of unknown modules are left out and named in a report. It can also check a file
// without storing it, and replace all data by an RDB file, as replicas do with a copy of their master. It regularly
// releases its guard, so that other clients can get the error that the server is loading.
//
// A [Dump] is the RDB file that SAVE and BGSAVE write. [Backups] makes the backups of BACKUP: the data of one
// moment, and later commands until the backup is sealed. Both report a file only when it is complete and its name is
// on the disk.
//
// The package depends neither on sessions nor on followers. It uses the server through [Source], [Replayer],
// [Storage] and [Stream].
package transfer
