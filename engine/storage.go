package engine

// This file is how the keyspace is seen by what stores it: package persist implements these interfaces.

// Journal takes what was done under each guard.
type Journal interface {
	// Append takes the commands that repeat what was done under one guard at time now, in ms since 1970: RESP arrays of bulk
	// strings one after the other, beginning in database 0 and with SELECT between databases. It is called while the guard's
	// shards are held, so that the order of the journal is that of the changes. commands is not kept.
	Append(now int64, commands []byte)
}

// Head is what is stored of a key: everything but a large value.
type Head struct {
	Type     Type
	Deadline int64 // ms since 1970; 0 is never
	// Parts is the number under which the parts of the value are stored, 0 if the value is stored whole.
	Parts uint64
	// External says that the value, which is stored whole, is not in Blob and has to be asked for with Blob.
	External bool
	// Blob is the value in its stored form, as Entry.appendBlob makes it, unless Parts or External is set.
	Blob []byte
}

// Source is where values are that are not in memory. Its methods may be called from any goroutine, under any guard.
type Source interface {
	// Head returns what is stored of a key; ok is false if nothing is.
	Head(space uint32, key string) (h Head, ok bool, err error)
	// Blob returns a value that is stored whole and apart from its head. The caller owns it.
	Blob(space uint32, key string) ([]byte, error)
	// Parts calls fn with the parts of a value in the byte order of their names, until it fails. fn keeps neither argument.
	Parts(id uint64, fn func(name, data []byte) error) error
}
