package perpergrpc

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/atomredis/atomredis/doors/door"
	"github.com/atomredis/atomredis/internal/protocols/perper/keys"
	"github.com/atomredis/atomredis/internal/wire/fabric"
)

// items is a call of StreamItems.
type items struct {
	ctx    context.Context
	stream string
	sub    *door.Subscription
	box    *outbox[fabric.StreamItemsResponse]
}

// fromNow is the startKey for new items only.
const fromNow = -1

// StreamItems implements fabric.FabricServer. It sends the headers first: an agent reports that it listens only after
// them, and the writer of the stream may wait for that.
func (service) StreamItems(r *fabric.StreamItemsRequest, out grpc.ServerStreamingServer[fabric.StreamItemsResponse]) error {
	ctx := out.Context()
	sub, err := subscribe(ctx, keys.Items(r.Stream))
	if err != nil {
		return err
	}
	defer sub.Close()
	if _, err := do(ctx, "PERPER.LEN", r.Stream); err != nil {
		return err // for example, there is no such cache
	}
	i := &items{ctx: ctx, stream: r.Stream, sub: sub, box: newOutbox(out, sub)}
	defer i.box.close()
	var first []int64
	if r.Stride == 0 && r.StartKey != fromNow {
		if first, err = i.page(strconv.FormatInt(r.StartKey, 10), "+", "COUNT", pageSize); err != nil {
			return err
		}
	}
	if err := out.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	if r.Stride == 0 {
		return i.box.why(i.ascending(r.StartKey, first))
	}
	return i.box.why(i.strides(r.StartKey, r.Stride))
}

// send sends a key.
func (i *items) send(key int64) error { return i.box.send(&fabric.StreamItemsResponse{Key: key}) }

// next waits for the key of the next new item.
func (i *items) next() (key int64, err error) {
	for {
		m, err := i.sub.Next(i.ctx)
		if err != nil {
			return 0, err
		}
		if key, err = strconv.ParseInt(m.Payload, 10, 64); err == nil { // other clients may publish anything
			return key, nil
		}
	}
}

// pageSize is how many keys one command returns.
const pageSize = 1000

// page returns some keys between two bounds.
func (i *items) page(from, to string, options ...any) ([]int64, error) {
	reply, err := do(i.ctx, append([]any{"PERPER.KEYS", i.stream, from, to}, options...)...)
	if err != nil {
		return nil, err
	}
	list, err := reply.Slice()
	if err != nil {
		return nil, err
	}
	found := make([]int64, len(list))
	for n, r := range list {
		if found[n], err = r.Int(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// ascending sends the existing keys after start, and then new keys that are greater than all others, or the first time
// equal to start. found has the first keys from start on, at the time of the headers.
func (i *items) ascending(start int64, found []int64) error {
	last, any, sent := start, start == fromNow, false // any accepts every key as the first
	for len(found) > 0 {
		for _, key := range found {
			if key == start {
				continue
			}
			if err := i.send(key); err != nil {
				return err
			}
			sent = true
		}
		last = found[len(found)-1]
		if len(found) < pageSize {
			break
		}
		var err error
		if found, err = i.page(fmt.Sprintf("(%d", last), "+", "COUNT", pageSize); err != nil {
			return err
		}
	}
	again := !sent && !any // accept the key at start
	for {
		key, err := i.next()
		if err != nil {
			return err
		}
		if !any && key <= last && !(again && key == start) {
			continue
		}
		last, any, again = key, false, false
		if err := i.send(key); err != nil {
			return err
		}
	}
}

// strides sends the keys at distances of one stride, each when it exists.
func (i *items) strides(start, stride int64) error {
	from, to, options := "+", "-", []any{"COUNT", pageSize, "REV"}
	next := start
	if stride > 0 {
		to, options = "+", options[:2]
	}
	if start == fromNow {
		first, err := i.first(stride)
		if err != nil {
			return err
		}
		next = first
	}
	for {
		// The items that exist already.
		for full := true; full; {
			from = strconv.FormatInt(next, 10)
			low, high := from, to
			if stride < 0 {
				low, high = to, from
			}
			found, err := i.page(low, high, options...)
			if err != nil {
				return err
			}
			full = len(found) == pageSize
			for _, key := range found {
				if key != next {
					if behind := (key > next) == (stride > 0); behind {
						full = false
						break
					}
					continue
				}
				if err := i.send(key); err != nil {
					return err
				}
				next += stride
			}
		}
		// The items that follow.
		for {
			key, err := i.next()
			if err != nil {
				return err
			}
			if key == next {
				break
			}
		}
		if err := i.send(next); err != nil {
			return err
		}
		next += stride
	}
}

// first returns the key at which strides begin: the last item, or the first that comes.
func (i *items) first(stride int64) (int64, error) {
	options := []any{"COUNT", 1}
	if stride > 0 {
		options = append(options, "REV")
	}
	found, err := i.page("-", "+", options...)
	if err != nil {
		return 0, err
	}
	if len(found) > 0 {
		return found[0], nil
	}
	return i.next()
}
