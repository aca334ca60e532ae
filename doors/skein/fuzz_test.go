package skein

import (
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/atomredis/atomredis/internal/wire/skein"
	"github.com/atomredis/atomredis/resp"
)

// No request and no reply causes a panic, and every answer can be encoded.
func FuzzMessages(f *testing.F) {
	put := &pb.OpRequest{Request: &pb.OpRequest_PutKey{PutKey: &pb.PutKeyRequest{Key: "k", Value: []byte("v"),
		Owner: &pb.ContainerInstance{ServiceName: "s", Instance: 1}, ReturnPrevious: true}}}
	get := &pb.OpRequest{Request: &pb.OpRequest_GetRange{GetRange: &pb.GetRangeRequest{Start: "a", End: "b"}}}
	del := &pb.OpRequest{Request: &pb.OpRequest_DeleteRange{DeleteRange: &pb.DeleteRangeRequest{ResultType: 2}}}
	seed, err := proto.Marshal(&pb.TransactionRequest{OnSuccess: []*pb.OpRequest{put, get, {}, del}, OnFailure: []*pb.OpRequest{del},
		Condition: []*pb.Condition{{Key: "k", Rhs: &pb.Condition_Value{Value: []byte("v")}}, {Field: 1}}})
	if err != nil {
		f.Fatal(err)
	}
	item := "*3\r\n$1\r\na\r\n$1\r\nv\r\n$3\r\ns_1\r\n"
	f.Add(seed, []byte("*2\r\n:1\r\n*3\r\n*2\r\n$1\r\nv\r\n_\r\n*1\r\n"+item+"*1\r\n$1\r\nk\r\n"))
	f.Add(seed, []byte("*2\r\n:0\r\n*1\r\n*1\r\n$1\r\n\xff\r\n"))
	f.Add([]byte(nil), []byte("*1\r\n%8\r\n$2\r\nid\r\n$3\r\ns_1\r\n$7\r\nservice\r\n$1\r\ns\r\n$8\r\ninstance\r\n:1\r\n$5\r\nstate\r\n$7\r\n"+
		"RUNNING\r\n$5\r\nstart\r\n:5\r\n$6\r\nfinish\r\n:0\r\n$5\r\nlease\r\n$1\r\n-\r\n$7\r\nmessage\r\n$1\r\n\xff\r\n"))
	f.Fuzz(func(t *testing.T, request, reply []byte) {
		r := new(pb.TransactionRequest)
		if proto.Unmarshal(request, r) != nil {
			return
		}
		for _, c := range r.Condition {
			appendCondition(nil, c)
		}
		for _, ops := range [][]*pb.OpRequest{r.OnSuccess, r.OnFailure} {
			if _, err := appendOperations(nil, ops); err != nil {
				return
			}
		}
		for parsed, rest, err := resp.NextReply(reply); err == nil && len(reply) > 0; parsed, rest, err = resp.NextReply(rest) {
			if response, err := transactionResponse(r, parsed); err == nil {
				sendable(t, response)
			}
			if response, err := containers(parsed, nil); err == nil {
				sendable(t, response)
			}
			if _, list, err := keyValues(parsed, false); err == nil {
				sendable(t, &pb.GetRangeResponse{Result: list})
			}
			if len(rest) == 0 {
				break
			}
		}
	})
}

func sendable(t *testing.T, m proto.Message) {
	if _, err := proto.Marshal(m); err != nil {
		t.Fatal(err)
	}
}
