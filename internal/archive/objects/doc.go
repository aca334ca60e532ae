// Package objects implements archives as objects of a [Store]: files of a directory, or objects of a bucket.
//
// # Objects
//
// The records of a journal are archived in chains. A chain begins with a base, a copy of all data at a position of the journal.
// Pieces follow, each with the records from the end of the one before it. Further bases in the same chain shorten a restore. A
// chain ends where the journal does not continue: its records were not kept long enough, the data was replaced without records,
// or the archive gets the data of another server. The next one begins with a base again.
//
//	head                                                      the chain that grows, as JSON
//	CHAIN/reach                                               up to when nothing has happened after the last piece, as JSON
//	CHAIN/VOLUME/base_PLACE_TIME.zst                          a base
//	CHAIN/VOLUME/log_LSN_FROM_TO_FIRST_THROUGH.zst            a piece
//
// A chain's name has the time of its beginning. A volume is named by the LSN of its base, so that objects sort by position, and
// few must be listed to find the end of a chain. PLACE, FROM and TO are places of the journal ([journal.Place]); FIRST is the
// time of a piece's first record, THROUGH the time up to which the piece has everything, TIME that of a base.
//
// An object is complete when it is listed. Names say everything that must be known before objects are read, so nothing has to
// be updated together with an upload, and a crash between any two steps leaves a valid archive.
//
// # What must stay true
//
//   - Only durable records are archived; in a group, committed ones. So what two leaders upload never contradicts, and may
//     overlap: a reader takes each record once.
//   - A chain without a gap from a base to a position has all records in between. A gap is an error, never skipped.
//   - Only one server writes: it begins a chain if head names none, if head names its own, or if nobody has written for
//     [silence].
//   - An object is damaged if its end block is missing or a checksum is wrong; the error names the object and the offset.
package objects
