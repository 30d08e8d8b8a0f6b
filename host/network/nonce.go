package network

import (
	"crypto/rand"
	"sync"
)

// NonceHeader is sent with every request of a guest. Every listener of the process refuses
// requests that bear this process's value with HAIRPIN_REFUSED: the way back in, through
// whatever proxy or translation, is closed (S16).
const NonceHeader = "Ecotone-Hairpin"

// Nonce returns the value of this process: random, made once, the same for its lifetime.
var Nonce = sync.OnceValue(rand.Text)
