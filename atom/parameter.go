package atom

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// ParameterOptions configure ParameterWrite.
type ParameterOptions struct {
	// NoOverride makes the fields immutable, for ever. New fields can still be added.
	NoOverride bool
	// Serialization is applied to each field. It must be that of the parameter's existing fields. Empty means None.
	Serialization string
	// Timeout is how long the parameter lives from now on. 0 does not change that: a new parameter lives until it is
	// deleted.
	Timeout time.Duration
}

// ParameterWrite sets fields of a parameter and returns their names. It creates the parameter if it does not exist. It
// sets either all fields or none. The fields "ser" and "override" are reserved.
func (e *Element) ParameterWrite(ctx context.Context, key string, data map[string]any, o ParameterOptions) ([]string,
	error) {
	op := fmt.Sprintf("write parameter %q", key)
	if len(data) == 0 {
		return nil, misuse(op, "a parameter needs a field")
	}
	if o.Timeout < 0 {
		o.Timeout = 0
	}
	names := sortedKeys(data)
	fields := make([]any, 0, 2*len(names))
	for _, name := range names {
		if name == serField || name == overrideField {
			return nil, misuse(op, "the field %q is reserved", name)
		}
		value, _, err := e.codecs.encode(op, o.Serialization, data[name])
		if err != nil {
			return nil, err
		}
		fields = append(fields, name, value)
	}
	refusal, err := e.protocol.writeParameter(ctx, parameterPrefix+key, orNone(o.Serialization), !o.NoOverride,
		o.Timeout, fields)
	switch written, otherSer := strings.CutPrefix(refusal, "ser "); {
	case err != nil:
		return nil, failed(ctx, op, err)
	case otherSer:
		return nil, misuse(op, "its serialization is %q, not %q", written, orNone(o.Serialization))
	case refusal != "":
		return nil, &Error{Code: InternalError, Op: op, Err: ErrNoOverride}
	}
	return names, nil
}

// ParameterRead returns the named fields of a parameter, or all if none are named. It leaves out missing fields. The
// error is ErrNotFound if there is no such parameter.
func (e *Element) ParameterRead(ctx context.Context, key string, d Decoding, fields ...string) (map[string]Value,
	error) {
	op := fmt.Sprintf("read parameter %q", key)
	all, err := e.protocol.client.HGetAll(ctx, parameterPrefix+key).Result()
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, found(ctx, op, err)
	}
	ser := all[serField]
	delete(all, serField)
	delete(all, overrideField)
	if len(fields) == 0 {
		fields = sortedKeys(all)
	}
	values := make(map[string]Value, len(fields))
	for _, name := range fields {
		if text, ok := all[name]; ok {
			values[name] = e.codecs.value([]byte(text), ser, d)
		}
	}
	return values, nil
}

// ParameterDelete deletes a parameter. The error is ErrNotFound if there is none.
func (e *Element) ParameterDelete(ctx context.Context, key string) error {
	n, err := e.protocol.client.Del(ctx, parameterPrefix+key).Result()
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return found(ctx, fmt.Sprintf("delete parameter %q", key), err)
}

// ParameterTimeout returns the time that a parameter has left to live, or NoTimeout.
func (e *Element) ParameterTimeout(ctx context.Context, key string) (time.Duration, error) {
	left, err := e.protocol.expiry(ctx, parameterPrefix+key)
	return left, found(ctx, fmt.Sprintf("get the timeout of parameter %q", key), err)
}

// ParameterSetTimeout sets how long a parameter lives from now on. With 0 and NoTimeout it lives until it is deleted.
func (e *Element) ParameterSetTimeout(ctx context.Context, key string, timeout time.Duration) error {
	return found(ctx, fmt.Sprintf("set the timeout of parameter %q", key),
		e.protocol.expire(ctx, parameterPrefix+key, timeout))
}

// ParameterList returns the keys of the parameters that match a pattern with *, ? and [], in order; all if it is empty.
func (e *Element) ParameterList(ctx context.Context, pattern string) ([]string, error) {
	if pattern == "" {
		pattern = "*"
	}
	keys, err := e.protocol.names(ctx, parameterPrefix, pattern)
	return keys, failed(ctx, "list parameters", err)
}
