package audit

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	originPrefix = "ecotone.audit/"
	originBytes  = len(originPrefix) + 16
	rootChars    = 44                                // base64 of 32 bytes
	sigPrefix    = "— "                              // of a signature line
	signedBytes  = 4 + 64                            // key hash and Ed25519 signature
	sigBytes     = len(sigPrefix) + originBytes + 93 // prefix, origin, space, base64 of 4 + 64 bytes
	maxHeadBytes = originBytes + 20 + rootChars + sigBytes + 5
)

// head is one signed statement about the tree.
type head struct {
	size int64
	root tlog.Hash
	note []byte
}

// sign makes the head of a tree.
func sign(s note.Signer, size int64, root tlog.Hash) (head, error) {
	text := fmt.Sprintf("%s\n%d\n%s\n", s.Name(), size, root)
	n, err := note.Sign(&note.Note{Text: text}, s)
	return head{size: size, root: root, note: n}, err
}

var errHeadForm = errors.New("the head is not of the documented form")

// headLine checks the i-th line of a head (0 to 4) against its form. A line that is not whole yet
// is checked for what it could still become, so that a torn tail and a damaged head are
// told apart.
func headLine(origin string, i int, line string, whole bool) bool {
	fits := func(n int) bool { return len(line) == n || (!whole && len(line) < n) }
	switch i {
	case 0:
		return line == origin || (!whole && strings.HasPrefix(origin, line))
	case 1:
		if line == "" {
			return !whole
		}
		n, err := strconv.ParseInt(line, 10, 64)
		return err == nil && n >= 0 && strconv.FormatInt(n, 10) == line
	case 2:
		return fits(rootChars)
	case 3:
		return line == ""
	default:
		want := sigPrefix + origin + " "
		return fits(sigBytes) && (strings.HasPrefix(line, want) || (!whole && strings.HasPrefix(want, line)))
	}
}

// parseHead reads the form of a head; the signature is not looked at.
func parseHead(origin string, msg []byte) (head, error) {
	lines := strings.Split(string(msg), "\n")
	if len(lines) != 6 || lines[5] != "" {
		return head{}, errHeadForm
	}
	for i, l := range lines[:5] {
		if !headLine(origin, i, l, true) {
			return head{}, errHeadForm
		}
	}
	h := head{note: msg}
	h.size, _ = strconv.ParseInt(lines[1], 10, 64)
	root, ok := canonicalBase64(lines[2], tlog.HashSize)
	if !ok {
		return head{}, errHeadForm
	}
	copy(h.root[:], root)
	if _, ok := canonicalBase64(strings.TrimPrefix(lines[4], sigPrefix+origin+" "), signedBytes); !ok {
		return head{}, errHeadForm
	}
	return h, nil
}

// canonicalBase64 decodes the one spelling that n bytes have in standard base64. Package note reads
// a signature leniently: the four unused bits before its padding are ignored, so a log could be changed
// there unseen.
func canonicalBase64(s string, n int) ([]byte, bool) {
	b, err := base64.StdEncoding.DecodeString(s)
	return b, err == nil && len(b) == n && base64.StdEncoding.EncodeToString(b) == s
}

// openHead parses a head and checks its signature.
func openHead(v note.Verifier, msg []byte) (head, error) {
	h, err := parseHead(v.Name(), msg)
	if err != nil {
		return head{}, err
	}
	if _, err := note.Open(msg, note.VerifierList(v)); err != nil {
		return head{}, errors.New("the head's signature does not verify")
	}
	return h, nil
}
