package perperignite

import (
	le "encoding/binary"
	"errors"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/wire/ignite"
	"github.com/atomredis/atomredis/resp"
)

// raw is the option that marks objects in arguments and replies as bytes.
const raw = "RAW"

// tail returns the options after the objects of a command.
func (r *request) tail() []any {
	if r.expiry == nil {
		return []any{raw}
	}
	return []any{"EXPIRY", r.expiry.Created, r.expiry.Updated, r.expiry.Accessed, raw}
}

// request is a request in execution.
type request struct {
	*binary.Reader
	p   *peer
	out []byte // the body of the reply
	// cache is the id of the cache, if the operation is on one.
	cache int32
	// expiry is the time to live of the entries that it reads and writes; nil if it has none.
	expiry *binary.Expiry
}

// operation answers requests of one kind.
type operation struct {
	// onCache says that the request begins with the id of a cache and flags.
	onCache bool
	do      func(r *request) error
	// expires says that its command accepts a time to live.
	expires bool
}

// operations has the operations of thin clients by their codes.
var operations = map[int16]operation{
	0:    {false, (*request).closeCursor, false},
	1000: {true, (*request).get, true},
	1001: {true, (*request).put, true},
	1002: {true, pair("PERPER.PUTNX", (*request).bool), true},
	1003: {true, (*request).getAll, true},
	1004: {true, (*request).putAll, true},
	1005: {true, pair("PERPER.GETPUT", (*request).object), true},
	1006: {true, pair("PERPER.GETREPLACE", (*request).object), true},
	1007: {true, single("PERPER.GETREMOVE", (*request).object), false},
	1008: {true, pair("PERPER.GETPUTNX", (*request).object), true},
	1009: {true, pair("PERPER.REPLACE", (*request).bool), true},
	1010: {true, (*request).replaceIf, true},
	1011: {true, single("PERPER.HAS", (*request).bool), false},
	1012: {true, (*request).hasAll, false},
	1013: {true, (*request).clear, false},
	1014: {true, single("PERPER.REMOVE", (*request).nothing), false},
	1015: {true, (*request).removeAll, false},
	1016: {true, single("PERPER.REMOVE", (*request).bool), false},
	1017: {true, pair("PERPER.REMOVEIF", (*request).bool), false},
	1018: {true, (*request).removeAll, false},
	1019: {true, (*request).clear, false},
	1020: {true, (*request).size, false},
	1021: {true, (*request).peek, false},
	1050: {false, (*request).names, false},
	1051: {false, (*request).createNamed, false},
	1052: {false, (*request).getOrCreateNamed, false},
	1053: {false, (*request).create, false},
	1054: {false, (*request).getOrCreate, false},
	1055: {true, (*request).config, false},
	1056: {false, (*request).destroy, false},
	1101: {false, (*request).partitions, false},
	2000: {true, (*request).scan, false},
	2001: {false, (*request).page, false},
	2002: {true, (*request).sqlOfType, false},
	2003: {false, (*request).page, false},
	2004: {true, (*request).sql, false},
	2005: {false, (*request).page, false},
	2006: {true, (*request).watch, false},
	3000: {false, (*request).typeName, false},
	3001: {false, (*request).putTypeName, false},
	3002: {false, (*request).binaryType, false},
	3003: {false, (*request).putBinaryType, false},
	5000: {false, (*request).clusterState, false},
	5001: {false, (*request).setClusterState, false},
}

// The flags of operations on caches.
const (
	flagTransaction = 2
	flagExpiry      = 4
)

// The codes of some operations.
const (
	opPut              = 1001
	opRemoveAll        = 1019
	opStartTransaction = 4000
	opEndTransaction   = 4001
)

// execute executes a request and returns the body of its reply.
func (p *peer) execute(in ignite.Request) ([]byte, error) {
	op, ok := operations[in.Op]
	if !ok {
		return nil, &failure{ignite.StatusInvalidOp, "Invalid request op code: " + strconv.Itoa(int(in.Op))}
	}
	if err := p.allowed(in.Op); err != nil {
		return nil, err
	}
	r := &request{Reader: binary.NewReader(in.Body), p: p, out: p.out[:0]}
	if op.onCache {
		r.cache = r.Int32()
		flags := r.Byte()
		if flags&flagExpiry != 0 {
			if expiry := r.Expiry(); op.expires {
				r.expiry = &expiry
			}
		}
		if flags&flagTransaction != 0 {
			if handled, err := r.ofTransaction(in); handled {
				return r.out, err
			}
		}
	}
	if err := op.do(r); err != nil {
		return nil, err
	}
	return r.out, nil
}

// end returns an error if the request has unread bytes.
func (r *request) end() error {
	if r.Err() == nil && r.Len() > 0 {
		r.Fail(binary.ErrMalformed)
	}
	return r.Err()
}

// run executes a command after it has checked that the request was read completely.
func (r *request) run(args ...any) (resp.Reply, error) {
	if err := r.end(); err != nil {
		return resp.Reply{}, err
	}
	return r.p.do(args...)
}

// onCache executes a command on the cache of the request, with the cache's name before args.
func (r *request) onCache(command string, args ...any) (resp.Reply, error) {
	if err := r.end(); err != nil {
		return resp.Reply{}, err
	}
	return r.p.onCache(r.cache, command, args...)
}

// onCache executes a command on the cache with an id. It uses the last known name, and looks the id up again if there
// is no such cache.
func (p *peer) onCache(id int32, command string, args ...any) (resp.Reply, error) {
	for {
		known, stale := p.door.caches.Load(id)
		if !stale {
			reply, err := p.do("PERPER.NAME", id)
			if err != nil {
				return reply, err
			}
			if known, err = reply.Text(); errors.Is(err, resp.ErrNull) {
				return reply, &failure{ignite.StatusNoCache, "Cache does not exist [cacheId=" + strconv.Itoa(int(id)) + "]"}
			}
			p.door.caches.Store(id, known)
		}
		reply, err := p.do(append([]any{command, known}, args...)...)
		if !stale || failureStatus(err) != ignite.StatusNoCache {
			return reply, err
		}
		p.door.caches.CompareAndDelete(id, known)
	}
}

// failureStatus returns the status that err is answered with, and 0 for no error.
func failureStatus(err error) int32 {
	if err == nil {
		return 0
	}
	return failureOf(err).status
}

// The forms of answers.

func (r *request) nothing(resp.Reply) error { return nil }

func (r *request) bool(reply resp.Reply) error {
	n, err := reply.Int()
	r.appendBool(n > 0)
	return err
}

func (r *request) object(reply resp.Reply) error {
	if reply.IsNull() {
		r.out = binary.AppendNull(r.out)
		return nil
	}
	b, err := reply.Bytes()
	r.out = binary.AppendWrapped(r.out, b)
	return err
}

func (r *request) appendBool(v bool) {
	if v {
		r.out = append(r.out, 1)
	} else {
		r.out = append(r.out, 0)
	}
}

func (r *request) appendInt32(n int) { r.out = le.LittleEndian.AppendUint32(r.out, uint32(n)) }

func (r *request) appendInt64(n int64) { r.out = le.LittleEndian.AppendUint64(r.out, uint64(n)) }

// single returns an operation on a key.
func single(command string, answer func(*request, resp.Reply) error) func(r *request) error {
	return func(r *request) error {
		key := r.Object()
		reply, err := r.onCache(command, key, r.tail())
		if err != nil {
			return err
		}
		return answer(r, reply)
	}
}

// pair returns an operation on a key with a value.
func pair(command string, answer func(*request, resp.Reply) error) func(r *request) error {
	return func(r *request) error {
		key, value := r.Object(), r.Object()
		reply, err := r.onCache(command, key, value, r.tail())
		if err != nil {
			return err
		}
		return answer(r, reply)
	}
}

func (r *request) get() error { return single("PERPER.GET", (*request).object)(r) }

func (r *request) put() error { return pair("PERPER.PUT", (*request).nothing)(r) }

func (r *request) replaceIf() error {
	key, old, value := r.Object(), r.Object(), r.Object()
	reply, err := r.onCache("PERPER.REPLACEIF", key, old, value, r.tail())
	if err != nil {
		return err
	}
	return r.bool(reply)
}

// many reads a number of objects, or of groups of objects, and executes a command on them. Without objects it only
// checks that the cache exists, and the reply is a number.
func (r *request) many(command string, group int) (objects [][]byte, reply resp.Reply, err error) {
	n := r.Count(group)
	for range n * group {
		objects = append(objects, r.Object())
	}
	if n == 0 {
		reply, err = r.onCache("PERPER.LEN")
		return nil, reply, err
	}
	reply, err = r.onCache(command, n, objects, r.tail())
	return objects, reply, err
}

func (r *request) getAll() error {
	keys, reply, err := r.many("PERPER.MGET", 1)
	if err != nil {
		return err
	}
	start, found := len(r.out), 0
	r.appendInt32(0)
	if len(keys) > 0 {
		values, err := reply.Slice()
		if err != nil {
			return err
		}
		for i, v := range values {
			if v.IsNull() {
				continue
			}
			found++
			r.out = binary.AppendWrapped(r.out, keys[i])
			if err := r.object(v); err != nil {
				return err
			}
		}
	}
	le.LittleEndian.PutUint32(r.out[start:], uint32(found))
	return nil
}

func (r *request) putAll() error {
	_, _, err := r.many("PERPER.MPUT", 2)
	return err
}

func (r *request) hasAll() error {
	keys, reply, err := r.many("PERPER.MHAS", 1)
	if err != nil {
		return err
	}
	n, err := reply.Int()
	r.appendBool(len(keys) == 0 || int(n) == len(keys))
	return err
}

func (r *request) removeAll() error {
	_, _, err := r.many("PERPER.MREMOVE", 1)
	return err
}

func (r *request) clear() error {
	_, err := r.onCache("PERPER.CLEAR")
	return err
}

func (r *request) names() error {
	reply, err := r.run("PERPER.CACHES")
	if err != nil {
		return err
	}
	names, err := reply.Texts()
	r.appendInt32(len(names))
	for _, name := range names {
		r.out = binary.AppendString(r.out, name)
	}
	return err
}

func (r *request) createNamed() error { return r.createCache(r.String()) }

func (r *request) getOrCreateNamed() error { return r.createCache(r.String(), "IFMISSING") }

func (r *request) create() error      { return r.createConfigured() }
func (r *request) getOrCreate() error { return r.createConfigured("IFMISSING") }

// createConfigured creates a cache with a configuration. It ignores the length, which is wrong with some clients.
func (r *request) createConfigured(options ...any) error {
	r.Int32()
	b := r.Take(r.Len())
	if err := r.end(); err != nil {
		return err
	}
	config, err := binary.ParseConfig(b)
	if err != nil {
		return &failure{ignite.StatusBadConfig, "The configuration of the cache cannot be read: " + err.Error()}
	}
	return r.createCache(config.Name(), append([]any{"CONFIG", b}, options...)...)
}

// configOf returns the configuration of a cache, which is empty if it has none, and its name.
func (p *peer) configOf(cache int32) (config *binary.Config, name string, err error) {
	reply, err := p.onCache(cache, "PERPER.CONFIG")
	if err != nil {
		return nil, "", err
	}
	b, err := reply.Bytes()
	if err != nil {
		return nil, "", err
	}
	if len(b) == 0 {
		b = []byte{0, 0}
	}
	if config, err = binary.ParseConfig(b); err != nil {
		return nil, "", err
	}
	known, _ := p.door.caches.Load(cache)
	name, _ = known.(string)
	return config, name, nil
}

func (r *request) config() error {
	if err := r.end(); err != nil {
		return err
	}
	config, name, err := r.p.configOf(r.cache)
	if err != nil {
		return err
	}
	r.out = config.Append(r.out, name, r.p.wire.Hello().Version.AtLeast(6))
	return nil
}

func (r *request) destroy() error {
	r.cache = r.Int32()
	return r.destroyCache()
}

func (r *request) typeName() error {
	platform, id := r.Byte(), r.Int32()
	reply, err := r.run("PERPER.TYPENAME", platform, id)
	if err != nil {
		return err
	}
	name, err := reply.Text()
	if errors.Is(err, resp.ErrNull) {
		return &failure{ignite.StatusFailed, "Unknown type: " + strconv.Itoa(int(id))}
	}
	r.out = binary.AppendString(r.out, name)
	return err
}

func (r *request) putTypeName() error {
	platform, id, name := r.Byte(), r.Int32(), r.String()
	if _, err := r.run("PERPER.PUTTYPENAME", platform, id, name); err != nil {
		return err
	}
	r.appendBool(true)
	return nil
}

func (r *request) binaryType() error {
	reply, err := r.run("PERPER.TYPE", r.Int32(), raw)
	if err != nil {
		return err
	}
	r.appendBool(!reply.IsNull())
	if reply.IsNull() {
		return nil
	}
	b, err := reply.Bytes()
	r.out = append(r.out, b...)
	return err
}

func (r *request) putBinaryType() error {
	_, err := r.run("PERPER.PUTTYPE", r.Take(r.Len()))
	if err != nil && strings.HasPrefix(err.Error(), "BADTYPE ") {
		return &failure{ignite.StatusFailed, strings.TrimPrefix(err.Error(), "BADTYPE ")}
	}
	return err
}
