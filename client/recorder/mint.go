package recorder

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"oda"
)

// The layout of the number in an identifier that is made without the archive:
// milliseconds since the epoch, the generator, and a random part.
const (
	mintEpoch     = 1767744000000 // 2026-01-07T00:00:00Z in Unix milliseconds
	generatorBits = 10
	randomBits    = 11
	mintDigits    = "0123456789abcdefghjkmnpqrstvwxyz"
)

// minter makes identifiers without asking anybody. It never makes one twice,
// also when the clock is set back or stands still.
type minter struct {
	clock     func() time.Time
	generator uint64

	mu   sync.Mutex
	last uint64 // the number of the last identifier
}

// minting is the minter of the process. Recorders must share one: two of them
// could make the same identifier in the same millisecond.
var minting = newMinter(time.Now)

// newMinter makes a minter whose generator number is a hash of host and
// process.
func newMinter(clock func() time.Time) *minter {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	h := fnv.New32a()
	h.Write([]byte(host + "/" + strconv.Itoa(os.Getpid())))
	sum := uint64(h.Sum32())
	return &minter{clock: clock, generator: (sum ^ sum>>generatorBits ^ sum>>(2*generatorBits)) & (1<<generatorBits - 1)}
}

// next gives a new identifier for an entity of a kind.
func (m *minter) next(kind oda.Kind) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := uint64(max(m.clock().UnixMilli()-mintEpoch, 0))
	if before := m.last >> (generatorBits + randomBits); at <= before {
		at = before + 1 // one a millisecond is enough for blocks
	}
	m.last = at<<(generatorBits+randomBits) | m.generator<<randomBits | rand.Uint64N(1<<randomBits)
	var text [13]byte
	i := len(text)
	for n := m.last; ; {
		i--
		text[i] = mintDigits[n%32]
		if n /= 32; n == 0 {
			return kind.Prefix() + "-" + string(text[i:])
		}
	}
}
