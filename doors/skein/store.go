package skein

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	pb "github.com/atomredis/atomredis/internal/wire/skein"
	"github.com/atomredis/atomredis/resp"
)

// The methods for keys and values. Functions append the arguments of an operation, which are the same alone and in a
// transaction.

// GetRange implements pb.AppMasterServer.
func (d *skein) GetRange(ctx context.Context, r *pb.GetRangeRequest) (*pb.GetRangeResponse, error) {
	args, err := appendGetRange([]any{"SKEIN.RANGE", d.app()}, r)
	if err != nil {
		return nil, err
	}
	reply, err := d.do(ctx, args...)
	if err != nil {
		return nil, err
	}
	return getRangeResponse(r, reply)
}

func appendGetRange(args []any, r *pb.GetRangeRequest) ([]any, error) {
	results, ok := pb.GetRangeRequest_ResultType_name[int32(r.ResultType)]
	if !ok {
		return nil, invalid("Unknown result type %d", r.ResultType)
	}
	return append(args, r.Start, r.End, results), nil
}

func getRangeResponse(r *pb.GetRangeRequest, reply resp.Reply) (*pb.GetRangeResponse, error) {
	count, result, err := keyValues(reply, r.ResultType == pb.GetRangeRequest_KEYS)
	return &pb.GetRangeResponse{Count: count, ResultType: r.ResultType, Result: result}, err
}

// PutKey implements pb.AppMasterServer.
func (d *skein) PutKey(ctx context.Context, r *pb.PutKeyRequest) (*pb.PutKeyResponse, error) {
	reply, err := d.do(ctx, appendPutKey([]any{"SKEIN.PUT", d.app()}, r)...)
	if err != nil {
		return nil, err
	}
	return putKeyResponse(r, reply)
}

func appendPutKey(args []any, r *pb.PutKeyRequest) []any {
	args = append(args, r.Key)
	if !r.IgnoreValue {
		args = append(args, "VALUE", r.Value)
	}
	switch {
	case r.IgnoreOwner:
		args = append(args, "KEEPOWNER")
	case r.Owner != nil:
		args = append(args, "OWNER", containerID(r.Owner))
	}
	if r.ReturnPrevious {
		args = append(args, "GET")
	}
	return args
}

func putKeyResponse(r *pb.PutKeyRequest, reply resp.Reply) (*pb.PutKeyResponse, error) {
	response := &pb.PutKeyResponse{ReturnPrevious: r.ReturnPrevious}
	if !r.ReturnPrevious || reply.IsNull() {
		return response, nil
	}
	parts, err := reply.Slice()
	if err != nil || len(parts) != 2 {
		return nil, unexpected(err)
	}
	response.Previous, err = keyValue(r.Key, parts)
	return response, err
}

// DeleteRange implements pb.AppMasterServer.
func (d *skein) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	args, err := appendDeleteRange([]any{"SKEIN.DEL", d.app()}, r)
	if err != nil {
		return nil, err
	}
	reply, err := d.do(ctx, args...)
	if err != nil {
		return nil, err
	}
	return deleteRangeResponse(r, reply)
}

func appendDeleteRange(args []any, r *pb.DeleteRangeRequest) ([]any, error) {
	results, ok := pb.DeleteRangeRequest_ResultType_name[int32(r.ResultType)]
	if !ok {
		return nil, invalid("Unknown result type %d", r.ResultType)
	}
	return append(args, r.Start, r.End, results), nil
}

func deleteRangeResponse(r *pb.DeleteRangeRequest, reply resp.Reply) (*pb.DeleteRangeResponse, error) {
	count, result, err := keyValues(reply, r.ResultType == pb.DeleteRangeRequest_KEYS)
	return &pb.DeleteRangeResponse{Count: count, ResultType: r.ResultType, Result: result}, err
}

// Transaction implements pb.AppMasterServer.
func (d *skein) Transaction(ctx context.Context, r *pb.TransactionRequest) (*pb.TransactionResponse, error) {
	args := []any{"SKEIN.TXN", d.app(), "IF"}
	var err error
	for _, c := range r.Condition {
		if args, err = appendCondition(args, c); err != nil {
			return nil, err
		}
	}
	if args, err = appendOperations(append(args, "THEN"), r.OnSuccess); err != nil {
		return nil, err
	}
	if args, err = appendOperations(append(args, "ELSE"), r.OnFailure); err != nil {
		return nil, err
	}
	reply, err := d.do(ctx, args...)
	if err != nil {
		return nil, err
	}
	return transactionResponse(r, reply)
}

var operators = map[pb.Condition_Operator]string{
	pb.Condition_EQUAL: "=", pb.Condition_NOT_EQUAL: "!=", pb.Condition_LESS: "<", pb.Condition_LESS_EQUAL: "<=",
	pb.Condition_GREATER: ">", pb.Condition_GREATER_EQUAL: ">=",
}

// appendCondition appends a condition. A right-hand side of another kind than the left-hand side counts as missing.
func appendCondition(args []any, c *pb.Condition) ([]any, error) {
	operator, ok := operators[c.Operator]
	if !ok {
		return nil, invalid("Unknown operator %d", c.Operator)
	}
	switch c.Field {
	case pb.Condition_VALUE:
		if rhs, ok := c.Rhs.(*pb.Condition_Value); ok {
			return append(args, "VALUE", c.Key, operator, rhs.Value), nil
		}
		return append(args, "NOVALUE", c.Key, operator), nil
	case pb.Condition_OWNER:
		if rhs, ok := c.Rhs.(*pb.Condition_Owner); ok {
			return append(args, "OWNER", c.Key, operator, containerID(rhs.Owner)), nil
		}
		return append(args, "NOOWNER", c.Key, operator), nil
	}
	return nil, invalid("Unknown field %d", c.Field)
}

func appendOperations(args []any, ops []*pb.OpRequest) (_ []any, err error) {
	for _, op := range ops {
		switch r := op.Request.(type) {
		case *pb.OpRequest_GetRange:
			args, err = appendGetRange(append(args, "RANGE"), r.GetRange)
		case *pb.OpRequest_PutKey:
			args = appendPutKey(append(args, "PUT"), r.PutKey)
		case *pb.OpRequest_DeleteRange:
			args, err = appendDeleteRange(append(args, "DEL"), r.DeleteRange)
		}
		if err != nil {
			return nil, err
		}
	}
	return args, nil
}

func transactionResponse(r *pb.TransactionRequest, reply resp.Reply) (*pb.TransactionResponse, error) {
	parts, err := reply.Slice()
	if err != nil || len(parts) != 2 {
		return nil, unexpected(err)
	}
	succeeded, err := parts[0].Int()
	if err != nil {
		return nil, err
	}
	results, err := parts[1].Slice()
	if err != nil {
		return nil, err
	}
	response, ops := &pb.TransactionResponse{Succeeded: succeeded == 1}, r.OnFailure
	if response.Succeeded {
		ops = r.OnSuccess
	}
	for _, op := range ops {
		if op.Request == nil {
			continue // it has no result
		}
		if len(results) == 0 {
			return nil, unexpected(nil)
		}
		result := new(pb.OpResponse)
		switch r := op.Request.(type) {
		case *pb.OpRequest_GetRange:
			var one pb.OpResponse_GetRange
			one.GetRange, err = getRangeResponse(r.GetRange, results[0])
			result.Response = &one
		case *pb.OpRequest_PutKey:
			var one pb.OpResponse_PutKey
			one.PutKey, err = putKeyResponse(r.PutKey, results[0])
			result.Response = &one
		case *pb.OpRequest_DeleteRange:
			var one pb.OpResponse_DeleteRange
			one.DeleteRange, err = deleteRangeResponse(r.DeleteRange, results[0])
			result.Response = &one
		}
		if err != nil {
			return nil, err
		}
		response.Result, results = append(response.Result, result), results[1:]
	}
	return response, nil
}

// keyValues reads the reply of an operation on a range: a number, keys, or keys with values and owners.
func keyValues(reply resp.Reply, onlyKeys bool) (count int32, list []*pb.KeyValue, err error) {
	if n, err := reply.Int(); err == nil {
		return int32(min(n, math.MaxInt32)), nil, nil
	}
	elements, err := reply.Slice()
	if err != nil {
		return 0, nil, err
	}
	list = make([]*pb.KeyValue, len(elements))
	for i, e := range elements {
		var key string
		if onlyKeys {
			key, err = e.Text()
			list[i] = &pb.KeyValue{Key: text(key)}
		} else {
			var parts []resp.Reply
			if parts, err = e.Slice(); err == nil && len(parts) != 3 {
				err = unexpected(nil)
			}
			if err == nil {
				key, err = parts[0].Text()
			}
			if err == nil {
				list[i], err = keyValue(key, parts[1:])
			}
		}
		if err != nil {
			return 0, nil, err
		}
	}
	return int32(min(len(list), math.MaxInt32)), list, nil
}

// keyValue returns a key with its value and its owner; a null owner means none.
func keyValue(key string, parts []resp.Reply) (*pb.KeyValue, error) {
	kv := &pb.KeyValue{Key: text(key)}
	var err error
	if kv.Value, err = parts[0].Bytes(); err != nil || parts[1].IsNull() {
		return kv, err
	}
	owner, err := parts[1].Text()
	kv.Owner = instance(owner)
	return kv, err
}

// text replaces invalid UTF-8, which messages cannot contain: keys that other commands have written may be any bytes.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}

// containerID returns the id of a container in the form of commands.
func containerID(c *pb.ContainerInstance) string {
	return c.GetServiceName() + "_" + strconv.Itoa(int(c.GetInstance()))
}

// instance parses the result of containerID; nil if id is malformed.
func instance(id string) *pb.ContainerInstance {
	i := strings.LastIndexByte(id, '_')
	if i < 0 {
		return nil
	}
	n, err := strconv.ParseInt(id[i+1:], 10, 32)
	if err != nil {
		return nil
	}
	return &pb.ContainerInstance{ServiceName: text(id[:i]), Instance: int32(n)}
}

var errUnexpected = errors.New("unexpected reply of a command of skein")

// unexpected returns the error for a reply of an unexpected form.
func unexpected(err error) error {
	if err == nil {
		return errUnexpected
	}
	return err
}
