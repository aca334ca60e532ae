package connection

import (
	"fmt"
	"math"
	"strings"

	"github.com/atomredis/atomredis/internal/clients"
	"github.com/atomredis/atomredis/internal/command"
	"github.com/atomredis/atomredis/resp"
)

// This file reads the filter options of CLIENT LIST and CLIENT KILL.

// Further options of CLIENT LIST and CLIENT KILL, as COMMAND DOCS shows them.
const (
	listSyntax = "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]] [USER username] " +
		"[ADDR ip:port] [LADDR laddr] [SKIPME <YES | NO>] [MAXAGE maxage] " + moreForList
	killSyntax = "<ip:port | [" + killOptions + "] [[" + killOptions + "] ...]>"

	killOptions = "ID client-id [client-id ...] | TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB> | USER username | " +
		"ADDR ip:port | LADDR ip:port | SKIPME <YES | NO> | MAXAGE maxage | " + moreForKill
	moreForList = "[NAME name] [IDLE idle] [FLAGS flags] [LIB-NAME lib-name] [LIB-VER lib-ver] [DB db] [CAPA capa] [IP ip] " +
		"[NOT-ID not-client-id [not-client-id ...]] [NOT-TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] " +
		"[NOT-USER not-username] [NOT-ADDR not-ip:port] [NOT-LADDR not-laddr] [NOT-NAME not-name] " +
		"[NOT-FLAGS not-flags] [NOT-LIB-NAME not-lib-name] [NOT-LIB-VER not-lib-ver] [NOT-DB not-db] " +
		"[NOT-CAPA not-capa] [NOT-IP not-ip]"
	moreForKill = "NAME name | IDLE idle | FLAGS flags | LIB-NAME lib-name | LIB-VER lib-ver | DB db | CAPA capa | IP ip | " +
		"NOT-ID not-client-id [not-client-id ...] | NOT-TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB> | " +
		"NOT-USER not-username | NOT-ADDR not-ip:port | NOT-LADDR not-laddr | NOT-NAME not-name | " +
		"NOT-FLAGS not-flags | NOT-LIB-NAME not-lib-name | NOT-LIB-VER not-lib-ver | NOT-DB not-db | " +
		"NOT-CAPA not-capa | NOT-IP not-ip"
)

// filterReader reads a filter.
type filterReader struct {
	c *command.Ctx
	o command.OptionArgs
	f clients.Filter
	// leastID is the smallest valid number of a client, and badID the error for an invalid one.
	leastID int64
	badID   command.Error
}

// listFilter reads the options of CLIENT LIST, killFilter those of CLIENT KILL, which spares the client itself unless
// SKIPME says no. On an error it writes the reply and returns false.
func listFilter(c *command.Ctx) (f clients.Filter, ok bool) {
	r := filterReader{c: c, o: c.Options(2), leastID: math.MinInt64, badID: "ERR Invalid client ID"}
	return r.read()
}

func killFilter(c *command.Ctx) (f clients.Filter, ok bool) {
	r := filterReader{c: c, o: c.Options(2), leastID: 1, badID: "ERR client-id should be greater than 0"}
	r.f.Except = clientOf(c).ID()
	return r.read()
}

func (r *filterReader) read() (f clients.Filter, ok bool) {
	for r.o.Next() {
		if !r.o.More() {
			r.c.Err(command.ErrSyntax)
			return f, false
		}
		if !r.option() {
			return f, false
		}
	}
	return r.f, true
}

// option reads the present option with its value. If they are invalid, it writes an error.
func (r *filterReader) option() bool {
	name := command.Lower(r.o.Word())
	switch name {
	case "skipme":
		switch command.Lower(r.o.Arg()) {
		case "yes":
			r.f.Except = clientOf(r.c).ID()
		case "no":
			r.f.Except = 0
		default:
			r.c.Err(command.ErrSyntax)
			return false
		}
		return true
	case "maxage":
		return r.seconds(name, &r.f.MaxAge)
	case "idle":
		return r.seconds(name, &r.f.Idle)
	}
	criteria := &r.f.With
	positive, not := strings.CutPrefix(name, "not-")
	if not {
		criteria = &r.f.Without
	}
	return r.criterion(positive, criteria)
}

// seconds reads a number of seconds.
func (r *filterReader) seconds(name string, to *int64) (ok bool) {
	if *to, ok = resp.ParseInt(r.o.Arg()); !ok {
		r.c.Err(command.Error("ERR " + name + " is not an integer or out of range"))
		return false
	}
	if *to <= 0 {
		r.c.Err(command.Error("ERR " + name + " should be greater than 0"))
		return false
	}
	return true
}

// criterion reads the value of the option of that name. If a name is repeated, the last value counts; numbers of
// clients are collected.
func (r *filterReader) criterion(name string, to *clients.Criteria) (ok bool) {
	value := r.o.Arg()
	switch name {
	case "id":
		return r.ids(value, to)
	case "type":
		to.Type, ok = typeArg(r.c, value)
		return ok
	case "user":
		if to.Account = hostOf(r.c).Users().Get(value); to.Account == nil {
			r.c.Err(command.Error(fmt.Sprintf("ERR No such user '%s'", command.UntilNUL(value))))
			return false
		}
	case "addr":
		to.Addr = value
	case "laddr":
		to.Local = value
	case "ip":
		to.IP = value
	case "name":
		to.Name = value
	case "lib-name":
		to.Library = value
	case "lib-ver":
		to.Version = value
	case "db":
		db, ok := r.c.IntIn(value, 0, int64(r.c.Databases()-1), "ERR DB index is out of range")
		if !ok {
			return false
		}
		number := int(db)
		to.DB = &number
	case "flags":
		to.Flags = string(value)
		return r.letters(clients.ValidFlags(to.Flags), "flags", to)
	case "capa":
		to.Capa = string(value)
		return r.letters(clients.ValidCapabilities(to.Capa), "capa", to)
	default:
		r.c.Err(command.ErrSyntax)
		return false
	}
	return true
}

// ids reads numbers of clients, beginning with value.
func (r *filterReader) ids(value []byte, to *clients.Criteria) bool {
	for {
		id, ok := r.c.IntIn(value, r.leastID, math.MaxInt64, r.badID)
		if !ok {
			return false
		}
		to.IDs = append(to.IDs, id)
		if !r.o.More() {
			return true
		}
		if _, another := resp.ParseInt(r.o.Rest()[0]); !another {
			return true
		}
		value = r.o.Arg()
	}
}

// letters writes an error unless the letters of a criterion are valid.
func (r *filterReader) letters(valid bool, what string, of *clients.Criteria) bool {
	if valid {
		return true
	}
	where, value := "provided", of.Flags
	if what == "capa" {
		value = of.Capa
	}
	if of == &r.f.Without {
		where = "NOT-" + strings.ToUpper(what)
	}
	r.c.Err(command.Error(fmt.Sprintf("ERR Unknown %s found in the %s filter: %s", what, where, command.OneLine(value))))
	return false
}
