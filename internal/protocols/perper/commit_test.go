package perper_test

import (
	"testing"

	"github.com/atomredis/atomredis/atomredistest"
)

func TestCommitChangesCachesTogether(t *testing.T) {
	s := atomredistest.Run(t)
	play(t, s, `
		> PERPER.COMMIT PUT c k 1
		NOCACHE the cache does not exist
		> PERPER.CREATE c
		(integer) 1
		> PERPER.CREATE d EXPIRY 60000 60000 -2
		(integer) 1
		> PERPER.COMMIT PUT c put 1 PUT d put 2 IFMISSING c if IFMISSING d put
		(integer) 1
		> PERPER.GET d put
		"2"
		> PERPER.COMMIT PUT c put 5 REMOVE d put IF c put 1 IF d put 3
		(integer) 0
		> PERPER.COMMIT PUT c put 5 REMOVE d put IFMISSING c put
		(integer) 0
		> PERPER.COMMIT PUT c put 5 PUT x a 1
		NOCACHE the cache does not exist
		> PERPER.MGET c 1 put
		1) "1"
		> PERPER.COMMIT put c put 5 remove d put remove d none if c put 1
		(integer) 1
		> PERPER.GET c put
		"5"
		> PERPER.GET d put
		(nil)
		> PERPER.COMMIT PUT c a 1 EXPIRY -1 -1 -1 PUT d a 1 EXPIRY -1 -1 -1
		(integer) 1
		> PERPER.TTL d a
		(integer) -1
		> PERPER.COMMIT PUT c raw raw
		(integer) 1
		> PERPER.COMMIT PUT c a 1 EXPIRY -3 -1 -1
		ERR a duration is a number of milliseconds, -1 for ever, or -2 to leave it
		> PERPER.COMMIT PUT c a 1 EXPIRY 1 1
		ERR syntax error
		> PERPER.COMMIT PUT c a null
		BADOBJECT keys and values cannot be null
		> PERPER.COMMIT PUT c a x RAW
		BADOBJECT not an object
		> PERPER.COMMIT REMOVE c a TAKE
		ERR syntax error
		> PERPER.COMMIT PUT c a
		ERR syntax error
		> SET perper:{e}:config x
		OK
		> SET perper:{e} x
		OK
		> PERPER.COMMIT PUT c a 2 PUT e a 2
		WRONGTYPE Operation against a key holding the wrong kind of value
		> PERPER.GET c a
		"1"`)
}

func TestStateOfTheCaches(t *testing.T) {
	s := atomredistest.Run(t)
	play(t, s, `
		> PERPER.STATE
		"ACTIVE"
		> PERPER.STATE readonly
		"READONLY"
		> PERPER.STATE other
		ERR syntax error
		> PERPER.STATE INACTIVE now
		ERR syntax error
		> GET perper:state
		"READONLY"
		> PERPER.STATE ACTIVE
		"ACTIVE"
		> EXISTS perper:state
		(integer) 0
		> LPUSH perper:state x
		(integer) 1
		> PERPER.STATE
		WRONGTYPE Operation against a key holding the wrong kind of value`)
}
