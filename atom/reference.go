package atom

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ReferenceOptions configure ReferenceCreate.
type ReferenceOptions struct {
	// Keys are the names of the references, one for each value. nil means random UUIDs.
	Keys []string
	// Serialization is applied to each value and becomes part of the reference. Empty means None.
	Serialization string
	// Timeout is how long the references live. 0 means DefaultReferenceTimeout; NoTimeout, until they are deleted.
	Timeout time.Duration
}

// ReferenceCreate stores values and returns a reference to each. It makes either all or none: if one of the keys is in
// use, the error is ErrExists.
func (e *Element) ReferenceCreate(ctx context.Context, values []any, o ReferenceOptions) ([]string, error) {
	const op = "create references"
	if o.Keys != nil && len(o.Keys) != len(values) {
		return nil, misuse(op, "%d keys for %d values", len(o.Keys), len(values))
	}
	if len(values) == 0 {
		return nil, misuse(op, "no values")
	}
	timeout := referenceTimeout(o.Timeout)
	refs, made := make([]string, len(values)), make([]*redis.Cmd, len(values))
	pipe := e.protocol.client.Pipeline()
	for i, value := range values {
		data, ser, err := e.codecs.encode(op, o.Serialization, value)
		if err != nil {
			return nil, err
		}
		id := ""
		if o.Keys == nil {
			id = uuid()
		} else if id = o.Keys[i]; id == "" {
			return nil, misuse(op, "an empty key")
		}
		refs[i] = e.referenceKey(id) + ":ser:" + ser
		set := []any{"set", refs[i], data, "nx"}
		if ms := lifetime(timeout); ms > 0 {
			set = append(set, "px", ms)
		}
		made[i] = pipe.Do(ctx, set...)
	}
	_, err := pipe.Exec(ctx)
	if err == nil {
		return refs, nil
	}
	var undo []string
	for i, set := range made {
		if set.Err() == nil {
			undo = append(undo, refs[i])
		} else if errors.Is(set.Err(), redis.Nil) {
			err = &Error{Code: InternalError, Op: op, Err: fmt.Errorf("%s: %w", refs[i], ErrExists)}
		}
	}
	if len(undo) > 0 {
		if undoErr := e.protocol.client.Unlink(context.WithoutCancel(ctx), undo...).Err(); undoErr != nil {
			err = errors.Join(err, undoErr)
		}
	}
	if errors.Is(err, ErrExists) {
		return nil, err
	}
	return nil, failed(ctx, op, err)
}

// ReferenceCreateFromStream makes a reference to each field of an entry, on the server, and returns them by field. An
// empty id means the newest entry. The timeout is as in ReferenceOptions.
func (e *Element) ReferenceCreateFromStream(ctx context.Context, element, stream, id string,
	timeout time.Duration) (map[string]string, error) {
	op := fmt.Sprintf("create references from %q %q", element, stream)
	prefix := e.referenceKey(uuid())
	keys, err := e.protocol.reference(ctx, streamKey(element, stream), id, prefix, referenceTimeout(timeout))
	if err != nil {
		return nil, failed(ctx, op, err)
	}
	if len(keys) == 0 {
		return nil, &Error{Code: InternalError, Op: op, Err: fmt.Errorf("entry %q: %w", id, ErrNotFound)}
	}
	refs := make(map[string]string, len(keys))
	for _, key := range keys {
		_, field, ok := strings.Cut(strings.TrimPrefix(key, prefix+":ser:"), ":")
		if !ok {
			return nil, misuse(op, "the server made a reference %q", key)
		}
		refs[field] = key
	}
	return refs, nil
}

// ReferenceGet returns the values of references. The Value of a reference that is gone does not exist (Value.Exists).
func (e *Element) ReferenceGet(ctx context.Context, refs []string, d Decoding) ([]Value, error) {
	const op = "get references"
	if err := checkReferences(op, refs); err != nil || len(refs) == 0 {
		return nil, err
	}
	found := make([]*redis.StringCmd, len(refs))
	pipe := e.protocol.client.Pipeline()
	for i, ref := range refs {
		found[i] = pipe.Get(ctx, ref)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, failed(ctx, op, err)
	}
	values := make([]Value, len(refs))
	for i, cmd := range found {
		data, err := cmd.Bytes()
		switch {
		case errors.Is(err, redis.Nil):
		case err != nil:
			return nil, failed(ctx, op, err)
		default:
			values[i] = e.codecs.value(data, e.serializationOf(refs[i]), d)
		}
	}
	return values, nil
}

// ReferenceDelete deletes references. It ignores references that are gone already.
func (e *Element) ReferenceDelete(ctx context.Context, refs ...string) error {
	const op = "delete references"
	if err := checkReferences(op, refs); err != nil || len(refs) == 0 {
		return err
	}
	return failed(ctx, op, e.protocol.client.Unlink(ctx, refs...).Err())
}

// ReferenceTimeout returns the time that a reference has left to live, or NoTimeout.
func (e *Element) ReferenceTimeout(ctx context.Context, ref string) (time.Duration, error) {
	const op = "get the timeout of a reference"
	if err := checkReferences(op, []string{ref}); err != nil {
		return 0, err
	}
	left, err := e.protocol.expiry(ctx, ref)
	return left, found(ctx, op, err)
}

// ReferenceSetTimeout sets how long a reference lives from now on. With 0 and NoTimeout it lives until it is deleted.
func (e *Element) ReferenceSetTimeout(ctx context.Context, ref string, timeout time.Duration) error {
	const op = "set the timeout of a reference"
	if err := checkReferences(op, []string{ref}); err != nil {
		return err
	}
	return found(ctx, op, e.protocol.expire(ctx, ref, timeout))
}

func (e *Element) referenceKey(id string) string { return referencePrefix + e.name + ":" + id }

// serializationOf reads the serialization from a reference: "reference:<element>:<id>:ser:<serialization>", followed by
// ":<field>" if it comes from a stream. Names may contain ":ser:" too, so the first ":ser:" that precedes a known
// serialization counts.
func (e *Element) serializationOf(ref string) string {
	rest := strings.TrimPrefix(ref, e.referenceKey(""))
	first := ""
	for {
		var found bool
		if _, rest, found = strings.Cut(rest, ":ser:"); !found {
			return first
		}
		name, _, _ := strings.Cut(rest, ":")
		if e.codecs[name] != nil {
			return name
		}
		if first == "" {
			first = name
		}
	}
}

func referenceTimeout(timeout time.Duration) time.Duration {
	if timeout == 0 {
		return DefaultReferenceTimeout
	}
	return timeout
}

// checkReferences refuses keys that are not references, so that they are neither read nor deleted.
func checkReferences(op string, refs []string) error {
	for _, ref := range refs {
		if !strings.HasPrefix(ref, referencePrefix) {
			return misuse(op, "%q is not a reference", ref)
		}
	}
	return nil
}

// found is failed for operations whose object may be missing.
func found(ctx context.Context, op string, err error) error {
	if errors.Is(err, ErrNotFound) || errors.Is(err, redis.Nil) {
		return &Error{Code: InternalError, Op: op, Err: ErrNotFound}
	}
	return failed(ctx, op, err)
}
