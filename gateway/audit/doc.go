// Package audit is the record of what the gateway decided and what came of it.
//
// It promises that an event is as durable as the mode says when [Log.Append] returns
// ([Durability]); that it is under a signed tree head soon after; that events are never dropped (a
// full queue makes callers wait, a log that cannot be written makes every append fail with
// AUDIT_UNAVAILABLE, and then nothing runs); that one invocation is one row, folded from its
// events; and that anyone with the public key can check the files without the store and without
// any other key.
// It refuses to know how a decision was reached, and it never sees an argument or a
// secret: inputs arrive as keyed digests ([Log.Digest]), changed settings as names.
//
// # Files
//
//	DIR/audit/key.pub                  verifier key (golang.org/x/mod/sumdb/note), one line
//	DIR/audit/LOCK                     held while a process has the log open
//	DIR/audit/<first index>.entries    entries; the name is 20 decimal digits
//	DIR/audit/<first index>.heads      signed heads over the same entries
//	DIR/keys/audit-signing             signer key (note format), mode 0600
//	DIR/keys/audit-org/<org>           the organisation's audit key, 64 hex digits, mode 0600
//	DIR/keys/audit-org/<org>.erased    present once that key was destroyed
//
// All integers are big-endian. An entries file starts with the 16 bytes
// "ECOTONE-AUDIT-2\n" and the uint64 index of its first entry, which is also its name.
// Then frames follow one another to the end of the file:
//
//	uint32  length of the payload, at most 4 MiB
//	bytes   payload: header ‖ sealed body
//	uint32  CRC-32C of the length and the payload
//
// The header is self-delimiting:
//
//	 0  uint8   version, 2
//	 1  uint8   kind: 1 decided, 2 started, 3 effect, 4 effect-closed, 5 ended, 6 refused, 7 admin, 8 system,
//	            9 resolved
//	 2  uint8   flags: bit 0 means that the row stays open until an ended entry, bit 1 that it waits for
//	            a resolved one; others are 0
//	 3  uint8   length n of the organisation, 1 to 63
//	 4  uint64  index: 0 for the first entry of the log, then one more each
//	12  uint64  0, or 1 + the index of the previous entry of the same row
//	20  uint64  Unix time in milliseconds, never less than the entry before
//	28  [16]    id of the row (a ULID): the invocation's, or the event's own
//	44  [8]     id of the key that seals the body
//	52  uint64  so many entries were on disk for certain when this one was written
//	60  [n]     organisation
//
// The sealed body is nonce (12) ‖ ciphertext ‖ tag (16): AES-256-GCM, additional data
// is the header, key is HKDF-SHA-256 of the organisation's key with no salt and the info
// "ecotone audit body" ‖ the uint64 first index of the file. The clear text is one JSON
// object, the event. A reader without the key checks everything but reads no body.
//
// # Tree and heads
//
// The leaves are the payloads in order, hashed as RFC 6962 says: SHA-256(0 ‖ payload)
// for a leaf, SHA-256(1 ‖ left ‖ right) for a node. A head is a signed note of exactly
// five lines, and a heads file is nothing but such notes one after another:
//
//	ecotone.audit/<16 hex digits>      origin, the same in every head of a log; also the key's name
//	<tree size in decimal>
//	<root hash, standard base64>
//
//	— <origin> <base64 of key hash and Ed25519 signature>
//
// Sizes strictly increase within and across files. The first head of a log has size 0. Every
// heads file but the last ends with a head over the last entry of its entries file.
//
// # Writing
//
// Appends that wait at the same time form a group of at most 8 MiB. Its frames are written, in
// [DurabilityPower] synchronised, and then the callers are answered. A head over all that was
// answered follows within [CoverEvery] and the time that a synchronisation takes; also before a file
// is full, before an organisation's key is destroyed, when [Log.Head] is asked, and when the log is
// closed. Before a head is written its entries are synchronised, in either mode, so that a
// head on disk means that its entries are on disk. At most 16 MiB of entries are under no head:
// who would write more waits for one.
//
// # Opening
//
// Everything a head covers must verify, or the log does not open. What follows the last head may have
// been acknowledged. Its frames are taken in order, each when it is whole (length, checksum), in its
// place (index, time) and authentic: its organisation's key opens its body, with the header
// as additional data. They are adopted: written once more as they are, synchronised, and covered by
// a new head before anything is appended.
//
// The first frame that is not whole is where a crash tore the file, and the file is cut there. A frame
// that is whole and not in its place or not authentic is no crash, and the log does not open. Neither
// does it when an authentic entry behind the torn frame says that the torn one was on disk when it was
// written. In [DurabilityPower] every group says so of all before it. So what is cut is
//
//   - after kill -9, in either mode: part of a group that nobody was answered for;
//   - after a loss of power in [DurabilityPower]: the same;
//   - after a loss of power in [DurabilityProcess]: at most what was acknowledged since the last
//     synchronisation.
//
// What was cut and what was adopted is in the log, by [Log.Recover].
//
// # What can be seen
//
// Under a head: every changed, exchanged, missing or added byte, by anyone ([Verify]).
//
// Under no head, which in a log that was closed is nothing: by anyone, entries out of order and damage to
// entries that later ones call safe; with the organisations' keys, by opening, every entry that is not as
// it was written. Not seen: that the end is missing. Whoever can write the folder can cut any number of
// entries and heads off it, or damage the last group so that it looks torn and is cut. Whoever has
// the keys can write another log. Both are seen with a head that was kept elsewhere: take it from
// [Log.Head] and give it to [Verify].
package audit
