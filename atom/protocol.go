package atom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/atomredis/atomredis/internal/protocols/atom/keys"
	"github.com/redis/go-redis/v9"
)

// protocol has every operation that takes several commands of the server. It returns the server's errors as they are;
// the methods of Element add the operation's name.
type protocol struct {
	client   redis.UniversalClient
	commands nativeCommands
	caller   *caller       // nil if commands are never sent with ATOM.CALL
	waiting  *redis.Client // nil if commands are never taken with ATOM.NEXT; see newWaiting
}

// piece limits how long one blocking command waits. A client cannot cancel a blocking command, and ignoring its reply
// would lose the popped element. So a wait consists of short pieces, and the end of a context is noticed between them.
const piece = 100 * time.Millisecond

// forever is the limit of a wait that ends only with the context.
const forever time.Duration = -1

// wait calls try, with the time that it may block, until it succeeds, the limit passes (false) or the context ends.
func wait(ctx context.Context, limit time.Duration, try func(block time.Duration) (bool, error)) (bool, error) {
	deadline := time.Now().Add(limit)
	for {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		block := piece
		if limit >= 0 {
			block = min(block, time.Until(deadline))
		}
		// A block of 0 would mean for ever.
		ok, err := try(max(block, time.Millisecond))
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		if ok || err != nil {
			return ok, err
		}
		if limit >= 0 && time.Until(deadline) <= 0 {
			return false, nil
		}
	}
}

// add appends an entry of alternating fields and values, and trims the stream approximately.
func (p *protocol) add(ctx context.Context, c redis.Cmdable, key string, maxLen int64, values ...any) *redis.StringCmd {
	return c.XAdd(ctx, &redis.XAddArgs{Stream: key, MaxLen: maxLen, Approx: maxLen > 0, Values: values})
}

// join makes the streams of an element and counts it. It returns the IDs of their first entries.
func (p *protocol) join(ctx context.Context, element string) (responseID, commandID string, err error) {
	var response, command *redis.StringCmd
	_, err = p.client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		tx.IncrBy(ctx, counterOfKey(element), 1)
		response = p.add(ctx, tx, responseKey(element), DefaultMaxLen, "language", Language, "version", Version)
		command = p.add(ctx, tx, commandKey(element), DefaultMaxLen, "language", Language, "version", Version)
		return nil
	})
	if err != nil {
		return "", "", err
	}
	return response.Val(), command.Val(), nil
}

// leaveScript decrements the count of elements of a name, and removes their keys with the last one. As a script it is
// atomic: no element can join in between.
var leaveScript = redis.NewScript(`
if redis.call('DECRBY', KEYS[1], 1) > 0 then
	return 0
end
for _, key in ipairs(KEYS) do
	redis.call('UNLINK', key)
end
return 1`)

func (p *protocol) leave(ctx context.Context, element string, streams []string) error {
	keys := []string{counterOfKey(element), responseKey(element), commandKey(element)}
	for _, stream := range streams {
		keys = append(keys, streamKey(element, stream))
	}
	return leaveScript.Run(ctx, p.client, keys).Err()
}

// newestScript returns the ID of each stream's newest entry without its data.
var newestScript = redis.NewScript(`
local ids = {}
for i, key in ipairs(KEYS) do
	local newest = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
	ids[i] = newest and newest[1] or '0-0'
end
return ids`)

// newest returns the last ID of each stream, for use in place of the ID "$", which would lose entries that are written
// between two pieces of a wait.
func (p *protocol) newest(ctx context.Context, keys ...string) ([]string, error) {
	return newestScript.Run(ctx, p.client, keys).StringSlice()
}

// read returns entries after the given IDs. It waits for entries up to limit; 0 does not wait.
func (p *protocol) read(ctx context.Context, keys, ids []string, count int, limit time.Duration) (
	found []redis.XStream, err error,
) {
	args := &redis.XReadArgs{Streams: slices.Concat(keys, ids), Count: int64(count), Block: -1}
	if limit == 0 {
		found, err = p.client.XRead(ctx, args).Result()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return found, err
	}
	_, err = wait(ctx, limit, func(block time.Duration) (bool, error) {
		args.Block = block
		found, err = p.client.XRead(ctx, args).Result()
		return len(found) > 0, err
	})
	return found, err
}

// makeGroup creates the consumer group for an element's commands after the given entry, unless it exists.
func (p *protocol) makeGroup(ctx context.Context, element, after string) error {
	err := p.client.XGroupCreateMkStream(ctx, commandKey(element), groupName(element), after).Err()
	if err != nil && strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return nil
	}
	return err
}

// popWait takes the lowest or highest member of a sorted set. It waits for a member up to limit.
func (p *protocol) popWait(ctx context.Context, key string, maximum bool,
	limit time.Duration) (member *redis.ZWithKey, err error) {
	name := "bzpopmin"
	if maximum {
		name = "bzpopmax"
	}
	_, err = wait(ctx, limit, func(block time.Duration) (bool, error) {
		// The end of the context must not lose a member that the server hands out in that moment.
		ctx := context.WithoutCancel(ctx)
		cmd := redis.NewZWithKeyCmd(ctx, name, key, block.Seconds()) // BZPopMin of go-redis only takes whole seconds
		_ = p.client.Process(ctx, cmd)
		member, err = cmd.Result()
		return err == nil, err
	})
	return member, err
}

// scan iterates over the keys that match a pattern, each once.
func (p *protocol) scan(ctx context.Context, pattern string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		seen := map[string]bool{}
		for cursor := uint64(0); ; {
			keys, next, err := p.client.Scan(ctx, cursor, pattern, 1000).Result()
			if err != nil {
				yield("", err)
				return
			}
			for _, key := range keys {
				if seen[key] {
					continue
				}
				seen[key] = true
				if !yield(key, nil) {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

// names returns the rest after prefix of the keys that match prefix + pattern, in order.
func (p *protocol) names(ctx context.Context, prefix, pattern string) ([]string, error) {
	var names []string
	for key, err := range p.scan(ctx, globQuoter.Replace(prefix)+pattern) {
		if err != nil {
			return nil, err
		}
		names = append(names, strings.TrimPrefix(key, prefix))
	}
	slices.Sort(names)
	return names, nil
}

// elements returns the names that have both a response and a command stream, in order.
func (p *protocol) elements(ctx context.Context) ([]string, error) {
	if cmd, ok := p.native(ctx, "atom.elements"); ok {
		return cmd.StringSlice()
	}
	responding, err := p.names(ctx, responseKey(""), "*")
	if err != nil {
		return nil, err
	}
	commanded, err := p.names(ctx, commandKey(""), "*")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(responding, func(name string) bool {
		_, both := slices.BinarySearch(commanded, name)
		return !both
	}), nil
}

// streams returns the data streams of one element, or of all if the name is empty, in order.
func (p *protocol) streams(ctx context.Context, element string) ([]StreamName, error) {
	if element != "" {
		return p.streamsOf(ctx, element)
	}
	if cmd, ok := p.native(ctx, "atom.streams"); ok {
		return streamPairs(cmd)
	}
	var streams []StreamName
	elements, err := p.elements(ctx)
	if err != nil {
		return nil, err
	}
	names, err := p.names(ctx, keys.Stream, "*")
	for _, name := range names {
		streams = append(streams, splitStream(name, elements))
	}
	slices.SortFunc(streams, func(a, b StreamName) int {
		return cmp.Or(strings.Compare(a.Element, b.Element), strings.Compare(a.Stream, b.Stream))
	})
	return streams, err
}

// streamsOf returns the data streams of one element.
func (p *protocol) streamsOf(ctx context.Context, element string) (streams []StreamName, err error) {
	var names []string
	if cmd, ok := p.native(ctx, "atom.streams", element); ok {
		names, err = cmd.StringSlice()
	} else {
		names, err = p.names(ctx, streamKey(element, ""), "*")
	}
	for _, name := range names {
		streams = append(streams, StreamName{element, name})
	}
	return streams, err
}

// streamPairs reads the pairs of element and stream in a reply.
func streamPairs(cmd *redis.Cmd) ([]StreamName, error) {
	pairs, err := cmd.Slice()
	if err != nil {
		return nil, err
	}
	streams := make([]StreamName, len(pairs))
	for i, pair := range pairs {
		names, _ := pair.([]any)
		if len(names) != 2 {
			return nil, fmt.Errorf("%v is not a pair of element and stream", pair)
		}
		streams[i].Element, _ = names[0].(string)
		streams[i].Stream, _ = names[1].(string)
	}
	return streams, nil
}

// splitStream splits "<element>:<stream>". Both may contain colons: the longest name of an element that exists wins,
// and without one the first colon.
func splitStream(name string, elements []string) StreamName {
	split := strings.Index(name, ":")
	for i := len(name) - 1; i > split; i-- {
		if name[i] != ':' {
			continue
		}
		if _, exists := slices.BinarySearch(elements, name[:i]); exists {
			split = i
			break
		}
	}
	if split < 0 {
		return StreamName{Stream: name}
	}
	return StreamName{name[:split], name[split+1:]}
}

// language returns the language in the first entry of an element's command stream; "" if that entry names none or was
// trimmed.
func (p *protocol) language(ctx context.Context, element string) (string, error) {
	first, err := p.client.XRangeN(ctx, commandKey(element), "-", "+", 1).Result()
	if err != nil || len(first) == 0 {
		return "", err
	}
	language, _ := first[0].Values["language"].(string)
	return language, nil
}

// referenceScript copies each field of an entry to a key of its own, on the server. ARGV: key of the stream, entry ID
// or "" for the newest, prefix of the references, timeout in milliseconds or 0. It returns the references.
var referenceScript = redis.NewScript(`
local stream, id, reference, timeout = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local entry
if id == '' then
	entry = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
else
	entry = redis.call('XRANGE', stream, id, id)[1]
end
local references = {}
if not entry then
	return references
end
local fields, ser = entry[2], 'none'
for i = 1, #fields, 2 do
	if fields[i] == 'ser' then
		ser = fields[i + 1]
	end
end
for i = 1, #fields, 2 do
	if fields[i] ~= 'ser' then
		local key = reference .. ':ser:' .. ser .. ':' .. fields[i]
		if timeout > 0 then
			redis.call('SET', key, fields[i + 1], 'PX', timeout)
		else
			redis.call('SET', key, fields[i + 1])
		end
		references[#references + 1] = key
	end
end
return references`)

// reference makes references, which begin with prefix, to the fields of an entry; none if there is no such entry.
func (p *protocol) reference(ctx context.Context, stream, id, prefix string, timeout time.Duration) ([]string, error) {
	if cmd, ok := p.native(ctx, "atom.streamref", stream, id, prefix, lifetime(timeout)); ok {
		return cmd.StringSlice()
	}
	refs, err := referenceScript.Run(ctx, p.client, nil, stream, id, prefix, lifetime(timeout)).StringSlice()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return refs, err
}

// log writes to the log.
func (p *protocol) log(ctx context.Context, level LogLevel, element, message, host string) error {
	if cmd, ok := p.native(ctx, "atom.log", int(level), element, message, host); ok {
		return cmd.Err()
	}
	return p.add(ctx, p.client, logStream, DefaultMaxLen, "level", int(level), "element", element, "msg", message,
		"host", host).Err()
}

// lifetime returns a timeout in milliseconds; 0 means none.
func lifetime(timeout time.Duration) int64 {
	if timeout < 0 {
		return 0
	}
	return milliseconds(timeout)
}

// parameterScript checks and writes a parameter in one step. KEYS: the parameter. ARGV: serialization, "true" or
// "false" for override, timeout in milliseconds or 0, then fields and values. It returns "" or the reason for a
// refusal.
var parameterScript = redis.NewScript(`
local key, ser, override, timeout = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
if redis.call('EXISTS', key) == 1 then
	local written = redis.call('HGET', key, 'ser') or 'none'
	if written ~= ser then
		return 'ser ' .. written
	end
	if redis.call('HGET', key, 'override') == 'false' then
		for i = 4, #ARGV, 2 do
			if redis.call('HEXISTS', key, ARGV[i]) == 1 then
				return 'override'
			end
		end
		override = 'false'
	end
end
for i = 4, #ARGV, 2 do
	redis.call('HSET', key, ARGV[i], ARGV[i + 1])
end
redis.call('HSET', key, 'ser', ser, 'override', override)
if timeout > 0 then
	redis.call('PEXPIRE', key, timeout)
end
return ''`)

func (p *protocol) writeParameter(ctx context.Context, key, ser string, override bool, timeout time.Duration,
	fields []any) (refusal string, err error) {
	args := append([]any{ser, "false", lifetime(timeout)}, fields...)
	if override {
		args[1] = "true"
	}
	return parameterScript.Run(ctx, p.client, []string{key}, args...).Text()
}

// expiry returns the time that a key has left to live, or NoTimeout.
func (p *protocol) expiry(ctx context.Context, key string) (time.Duration, error) {
	left, err := p.client.PTTL(ctx, key).Result()
	switch {
	case err != nil:
		return 0, err
	case left == -2:
		return 0, ErrNotFound
	case left == -1:
		return NoTimeout, nil
	}
	return left, nil
}

// expire sets how long a key lives; 0 and NoTimeout remove the limit.
func (p *protocol) expire(ctx context.Context, key string, timeout time.Duration) error {
	var exists *redis.IntCmd
	_, err := p.client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		exists = tx.Exists(ctx, key)
		if timeout > 0 {
			tx.Do(ctx, "pexpire", key, milliseconds(timeout))
		} else {
			tx.Persist(ctx, key)
		}
		return nil
	})
	if err == nil && exists.Val() == 0 {
		err = ErrNotFound
	}
	return err
}
