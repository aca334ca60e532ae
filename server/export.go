package server

import (
	"bytes"
	"context"
	"io"
	"strconv"

	"github.com/atomredis/atomredis/engine"
	"github.com/atomredis/atomredis/persist/rdb"
)

// Writing everything in a form that a Redis loads.

// WriteRDB writes the keyspace and the libraries of functions as they are at one moment, as an RDB file. The keyspace is locked until all is
// written. While keys are still being loaded after a start it waits for them.
func (srv *Server) WriteRDB(w io.Writer) error {
	return srv.whole(func(g *engine.Guard) error { return srv.encodeRDB(g, w, rdbAll) })
}

// WriteAOF is WriteRDB for an append-only file.
func (srv *Server) WriteAOF(w io.Writer) error {
	return srv.whole(func(g *engine.Guard) error {
		var err error
		a := aofWriter{emit: func(commands []byte) {
			if err == nil {
				_, err = w.Write(commands)
			}
		}}
		for _, code := range srv.functionSources() {
			a.command([]byte("FUNCTION"), []byte("LOAD"), []byte(code))
		}
		srv.encodeAOF(g, &a)
		return err
	})
}

// encodeAOF writes all keys as commands.
func (srv *Server) encodeAOF(g *engine.Guard, a *aofWriter) {
	for db := range srv.ks.Databases() {
		if g.Len(db) == 0 {
			continue
		}
		a.selectDB(db)
		g.Each(db, func(e *engine.Entry) bool {
			a.entry(e)
			return true
		})
	}
	a.flush()
}

// whole calls fn with a guard over everything, once all keys are known.
func (srv *Server) whole(fn func(g *engine.Guard) error) error {
	d, err := srv.Direct(0)
	if err != nil {
		return err
	}
	defer d.Release()
	d.mu.Lock() // so that the server does not close meanwhile
	defer d.mu.Unlock()
	if d.ended {
		return ErrClosed
	}
	if err := d.loaded(context.Background()); err != nil {
		return err
	}
	var failed error
	if err := srv.underAll(func(g *engine.Guard) { failed = fn(g) }); err != nil {
		return err
	}
	return failed
}

// rdbContent says what of the server an RDB file has.
type rdbContent uint8

const (
	rdbKeys rdbContent = 1 << iota
	rdbFunctions

	rdbAll = rdbKeys | rdbFunctions
)

// encodeRDB writes what content says as an RDB file. The guard holds everything.
func (srv *Server) encodeRDB(g *engine.Guard, w io.Writer, content rdbContent) error {
	version := rdb.Version
	stats := make([]engine.DBStats, srv.ks.Databases())
	for db := range stats {
		if stats[db] = g.DBStats(db); stats[db].FieldExpires > 0 && content&rdbKeys != 0 {
			version = rdb.VersionExpiringFields
		}
	}
	e := rdb.NewEncoder(w)
	e.Begin(version, rdb.Aux{Name: "redis-ver", Value: RedisVersion}, rdb.Aux{Name: "redis-bits", Value: strconv.Itoa(strconv.IntSize)},
		rdb.Aux{Name: "ctime", Value: strconv.FormatInt(g.Now()/1000, 10)}, rdb.Aux{Name: "aof-base", Value: "0"})
	if content&rdbFunctions != 0 {
		for _, code := range srv.functionSources() {
			e.Function(code)
		}
	}
	for db := range stats {
		if stats[db].Keys == 0 || content&rdbKeys == 0 {
			continue
		}
		e.SelectDB(db, stats[db].Keys, stats[db].Expires)
		g.Each(db, func(entry *engine.Entry) bool {
			e.Key(entry)
			return true
		})
	}
	return e.End()
}

// snapshotRDB returns an RDB file in memory.
func (srv *Server) snapshotRDB(g *engine.Guard, content rdbContent) []byte {
	var b bytes.Buffer
	_ = srv.encodeRDB(g, &b, content) // a Buffer does not fail
	return b.Bytes()
}
