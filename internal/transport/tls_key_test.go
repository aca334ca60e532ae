package transport

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeysMayBeEncrypted(t *testing.T) {
	for name, file := range encryptedKeys {
		plain, err := decryptKey([]byte(file), "secret")
		require.NoError(t, err, name)
		require.Contains(t, string(plain), "PRIVATE KEY-----", name)
		require.NotContains(t, string(plain), "ENCRYPTED", name)
		again, err := decryptKey(plain, "")
		require.NoError(t, err)
		require.Equal(t, plain, again)
		_, err = decryptKey([]byte(file), "")
		require.Equal(t, errKeyEncrypted, err, name)
		_, err = decryptKey([]byte(file), "wrong")
		require.Equal(t, errKeyPassword, err, name)
	}
	_, err := decryptKey([]byte(unsupportedKey), "secret")
	require.Equal(t, errKeyCipher, err)
}

// encryptedKeys are a key in forms that OpenSSL gives it; the password is "secret".
var encryptedKeys = map[string]string{
	"modern": `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiaf6X4yk9cywICA+gw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEIRR2D/vKB75rKRlqcB+VhoEgZAe
+UUTi2K0fJ32KI881OqKzuBIflK+3x1KT7lPfrD4F374jg+7F1deLfRjaqdpzsNE
D79oBmFOA/4kq3Bw3VpiPql+3a0kjP8VF5BWtHrHm8Y9DlmlcRtErjKNxGdCWMw0
2fvsdRo3R08Mg7e0LauLpFY91Of59t5S5623SZIlumjzx19FcLLyH2543Lwt70w=
-----END ENCRYPTED PRIVATE KEY-----`,
	"modern with SHA-1": `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHeMEkGCSqGSIb3DQEFDTA8MBsGCSqGSIb3DQEFDDAOBAhv8caEd4oIMgICA+gw
HQYJYIZIAWUDBAECBBB7I9s3hoGvEgfSFsm6E8mRBIGQusH6TYWs25sz1auPkHob
4ul63A2S3dFn4NnUo9d9+D/JWRawA+Zi+Pg72p70x+rfVP9jyNODqT+TKMdj612m
s4Yn6A5iXGnYIxRZuTWOmC+bOB1qBn0ljSX9rbiW3h2SPGEkblZuQxhn6e4cRsBY
zSbftZFO9k1GrygIUi4G9n3nrrIL7JAzELREryCZX8OA
-----END ENCRYPTED PRIVATE KEY-----`,
	"old": `-----BEGIN EC PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-128-CBC,74C23FA1A87EDE88E1EBA4B1E39AE794

MsH1K9q/7FCQrQbArWqeU2oyqBBrtttoDbO6Ygyqdpk1T80vEji32wzHU9cqunCa
L215TvfzLe1W65aGSK2rfaTfxvBb3b5rmxJfzddiDUMbYIbYgqZqTAA9G5DbMViP
/yOFJOZvGDfkigxJ6tpkGRBU7wjxHtntz6mpqT3ue8c=
-----END EC PRIVATE KEY-----`,
}

// unsupportedKey is the same key as OpenSSL wrote it long ago.
const unsupportedKey = `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIGxMBwGCiqGSIb3DQEMAQMwDgQI/w1MuYiJ7KsCAggABIGQ9PPGfcyZyIPC/89e
ozx2cZnaobNCqM/YhSbXr9hUOfTFWvv0RIFUKfT52HbN5BB14zrRJt4OgYl3462b
Re+XZUTJxPeHOfDN00RmAge8yr8a9cBr2DkXhUPuND6iSFt2d9IN4Ge//IxJIKRY
wMuN8Mpdzim63q9WFjaSIZuLomLXZQf2skvxjTUQlTOKlzWJ
-----END ENCRYPTED PRIVATE KEY-----`
