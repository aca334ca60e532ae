/* Usage: smoke ADDRESS. The client uses RESP2; its support of RESP3 depends on its version. */
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "smoke.c:%d: %s\n", __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

static redisContext *connect_to(const char *address) {
	char host[256];
	const char *colon = strrchr(address, ':');
	CHECK(colon && (size_t)(colon - address) < sizeof host);
	snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
	struct timeval timeout = {30, 0};
	redisContext *c = redisConnectWithTimeout(host, atoi(colon + 1), timeout);
	CHECK(c && !c->err);
	redisSetTimeout(c, timeout);
	return c;
}

static redisReply *call(redisContext *c, const char *format, ...) {
	va_list args;
	va_start(args, format);
	redisReply *r = redisvCommand(c, format, args);
	va_end(args);
	CHECK(r);
	return r;
}

/* is compares a reply with a text: strings and errors by their beginning, numbers by their digits. */
static int is(redisReply *r, int type, const char *text) {
	char number[32];
	const char *got = r->str;
	if (r->type == REDIS_REPLY_INTEGER) {
		snprintf(number, sizeof number, "%lld", r->integer);
		got = number;
	}
	int equal = r->type == type && (type == REDIS_REPLY_NIL || strncmp(got, text, strlen(text)) == 0);
	if (!equal)
		fprintf(stderr, "type %d: %s, and not type %d: %s\n", r->type, got ? got : "", type, text);
	return equal;
}

/* Checks one command's reply. */
#define REPLIES(c, type, text, ...) \
	do { \
		redisReply *r_ = call(c, __VA_ARGS__); \
		CHECK(is(r_, type, text)); \
		freeReplyObject(r_); \
	} while (0)

int main(int argc, char **argv) {
	CHECK(argc == 2);
	redisContext *c = connect_to(argv[1]), *other = connect_to(argv[1]);
	char p[64];
	snprintf(p, sizeof p, "hiredis-%d", (int)getpid());
	redisReply *r;

	REPLIES(c, REDIS_REPLY_STRING, "# Server", "INFO");
	REPLIES(c, REDIS_REPLY_ERROR, "NOPROTO", "HELLO 9");
	r = call(c, "COMMAND");
	CHECK(r->type == REDIS_REPLY_ARRAY && r->elements > 200);
	freeReplyObject(r);

	/* Strings and bytes. */
	REPLIES(c, REDIS_REPLY_STATUS, "OK", "SET %s:s v EX 100 NX", p);
	REPLIES(c, REDIS_REPLY_NIL, "", "SET %s:s w NX", p);
	REPLIES(c, REDIS_REPLY_NIL, "", "GET %s:missing", p);
	REPLIES(c, REDIS_REPLY_INTEGER, "9223372036854775807", "INCRBY %s:n 9223372036854775807", p);
	REPLIES(c, REDIS_REPLY_ERROR, "ERR increment or decrement would overflow", "INCR %s:n", p);
	unsigned char binary[256];
	for (int i = 0; i < 256; i++)
		binary[i] = (unsigned char)i;
	REPLIES(c, REDIS_REPLY_STATUS, "OK", "SET %s:b %b", p, binary, sizeof binary);
	r = call(c, "GET %s:b", p);
	CHECK(r->type == REDIS_REPLY_STRING && r->len == sizeof binary && memcmp(r->str, binary, sizeof binary) == 0);
	freeReplyObject(r);
	REPLIES(c, REDIS_REPLY_ERROR, "WRONGTYPE Operation against a key", "LPUSH %s:s x", p);
	REPLIES(c, REDIS_REPLY_ERROR, "ERR unknown command 'NOSUCH'", "NOSUCH");

	/* A pipeline. */
	for (int i = 0; i < 5000; i++)
		CHECK(redisAppendCommand(c, "INCR %s:p", p) == REDIS_OK);
	for (int i = 1; i <= 5000; i++) {
		CHECK(redisGetReply(c, (void **)&r) == REDIS_OK);
		CHECK(r->type == REDIS_REPLY_INTEGER && r->integer == i);
		freeReplyObject(r);
	}

	/* MULTI and WATCH. */
	REPLIES(c, REDIS_REPLY_STATUS, "OK", "MULTI");
	REPLIES(c, REDIS_REPLY_STATUS, "QUEUED", "SET %s:t 1", p);
	REPLIES(c, REDIS_REPLY_STATUS, "QUEUED", "INCR %s:t", p);
	r = call(c, "EXEC");
	CHECK(r->type == REDIS_REPLY_ARRAY && r->elements == 2 && is(r->element[0], REDIS_REPLY_STATUS, "OK") &&
	      is(r->element[1], REDIS_REPLY_INTEGER, "2"));
	freeReplyObject(r);
	REPLIES(c, REDIS_REPLY_STATUS, "OK", "WATCH %s:t", p);
	REPLIES(other, REDIS_REPLY_INTEGER, "3", "INCR %s:t", p);
	REPLIES(c, REDIS_REPLY_STATUS, "OK", "MULTI");
	REPLIES(c, REDIS_REPLY_STATUS, "QUEUED", "SET %s:t lost", p);
	REPLIES(c, REDIS_REPLY_NIL, "", "EXEC");

	/* Messages. */
	r = call(other, "SUBSCRIBE %s:news", p);
	CHECK(r->elements == 3 && is(r->element[2], REDIS_REPLY_INTEGER, "1"));
	freeReplyObject(r);
	REPLIES(c, REDIS_REPLY_INTEGER, "1", "PUBLISH %s:news hello", p);
	CHECK(redisGetReply(other, (void **)&r) == REDIS_OK);
	CHECK(r->elements == 3 && is(r->element[0], REDIS_REPLY_STRING, "message") && is(r->element[2], REDIS_REPLY_STRING, "hello"));
	freeReplyObject(r);
	r = call(other, "UNSUBSCRIBE");
	CHECK(r->elements == 3 && is(r->element[2], REDIS_REPLY_INTEGER, "0"));
	freeReplyObject(r);

	/* Blocking pops: a timeout, and a push by another client. */
	REPLIES(c, REDIS_REPLY_NIL, "", "BLPOP %s:l 0.01", p);
	CHECK(redisAppendCommand(c, "BLPOP %s:l 20", p) == REDIS_OK);
	int written = 0;
	while (!written)
		CHECK(redisBufferWrite(c, &written) == REDIS_OK);
	REPLIES(other, REDIS_REPLY_INTEGER, "1", "RPUSH %s:l x", p);
	CHECK(redisGetReply(c, (void **)&r) == REDIS_OK);
	CHECK(r->elements == 2 && is(r->element[1], REDIS_REPLY_STRING, "x"));
	freeReplyObject(r);

	/* Scripts: EVALSHA, and EVAL because the server does not know it. */
	char script[128], sha[41];
	snprintf(script, sizeof script, "return redis.call('INCRBY', KEYS[1], ARGV[1]) --%s", p);
	REPLIES(c, REDIS_REPLY_ERROR, "NOSCRIPT", "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0");
	REPLIES(c, REDIS_REPLY_INTEGER, "5", "EVAL %s 1 %s:e 5", script, p);
	r = call(c, "SCRIPT LOAD %s", script);
	CHECK(r->type == REDIS_REPLY_STRING && r->len == 40);
	memcpy(sha, r->str, sizeof sha);
	freeReplyObject(r);
	REPLIES(c, REDIS_REPLY_INTEGER, "10", "EVALSHA %s 1 %s:e 5", sha, p);

	/* Streams and groups. */
	REPLIES(c, REDIS_REPLY_STATUS, "OK", "XGROUP CREATE %s:x g $ MKSTREAM", p);
	REPLIES(c, REDIS_REPLY_STRING, "1-1", "XADD %s:x 1-1 i 0", p);
	r = call(c, "XREADGROUP GROUP g c COUNT 10 BLOCK 1000 STREAMS %s:x >", p);
	CHECK(r->elements == 1 && is(r->element[0]->element[1]->element[0]->element[0], REDIS_REPLY_STRING, "1-1"));
	freeReplyObject(r);
	REPLIES(c, REDIS_REPLY_INTEGER, "1", "XACK %s:x g 1-1", p);

	/* SCAN, and removing the keys made here. */
	for (int i = 0; i < 1000; i++)
		CHECK(redisAppendCommand(c, "SET %s:scan:%d x", p, i) == REDIS_OK);
	for (int i = 0; i < 1000; i++) {
		CHECK(redisGetReply(c, (void **)&r) == REDIS_OK);
		freeReplyObject(r);
	}
	char cursor[32] = "0";
	long long removed = 0;
	do {
		r = call(c, "SCAN %s MATCH %s:* COUNT 100", cursor, p);
		CHECK(r->type == REDIS_REPLY_ARRAY && r->elements == 2);
		snprintf(cursor, sizeof cursor, "%s", r->element[0]->str);
		for (size_t i = 0; i < r->element[1]->elements; i++) {
			redisReply *k = r->element[1]->element[i], *n = call(c, "UNLINK %b", k->str, (size_t)k->len);
			removed += n->integer;
			freeReplyObject(n);
		}
		freeReplyObject(r);
	} while (strcmp(cursor, "0") != 0);
	CHECK(removed == 1007);
	redisFree(c);
	redisFree(other);

	printf("hiredis %d.%d.%d: RESP2\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
	return 0;
}
