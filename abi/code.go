package abi

// Code is a stable, machine-readable reason. Codes are never reused and never
// renamed; one enters the catalogue when it can be reached, and each is reached by
// a test (X47).
type Code string

// Kind is the closed class a code belongs to (M60). Backend detail never crosses it.
type Kind string

const (
	KindInvalidArgument   Kind = "invalid_argument"
	KindUnauthenticated   Kind = "unauthenticated"
	KindPermissionDenied  Kind = "permission_denied"
	KindNotFound          Kind = "not_found"
	KindAlreadyExists     Kind = "already_exists"
	KindConflict          Kind = "conflict"
	KindVersionMismatch   Kind = "version_mismatch"
	KindDirectoryNotEmpty Kind = "directory_not_empty"
	KindNotReady          Kind = "not_ready"
	KindFenceUnknown      Kind = "fence_unknown"
	KindResourceExhausted Kind = "resource_exhausted"
	KindInternal          Kind = "internal"
)

// Retryable reports whether a caller may try the same thing again unchanged: only
// not_ready and unauthenticated are (M60).
func (k Kind) Retryable() bool { return k == KindNotReady || k == KindUnauthenticated }

// Kinds lists the closed class.
func Kinds() []Kind {
	return []Kind{
		KindInvalidArgument, KindUnauthenticated, KindPermissionDenied, KindNotFound, KindAlreadyExists, KindConflict,
		KindVersionMismatch, KindDirectoryNotEmpty, KindNotReady, KindFenceUnknown, KindResourceExhausted, KindInternal,
	}
}

// CodeInfo is one row of the catalogue.
type CodeInfo struct {
	Code    Code
	Kind    Kind
	Status  int    // HTTP status, as a plain number: naming net/http here would link it into every guest
	Errno   Errno  // what a guest sees when a host call ends with this code; 0: never seen by a guest
	Meaning string // one sentence for the reference
}

// Request and transport.
const (
	CodeInvalidRequest      Code = "INVALID_REQUEST"
	CodeInvalidJSON         Code = "INVALID_JSON"
	CodeUnknownField        Code = "UNKNOWN_FIELD"
	CodeUnsupportedMedia    Code = "UNSUPPORTED_MEDIA_TYPE"
	CodePayloadTooLarge     Code = "PAYLOAD_TOO_LARGE"
	CodeMethodNotAllowed    Code = "METHOD_NOT_ALLOWED"
	CodeNotFound            Code = "NOT_FOUND"
	CodeUnauthenticated     Code = "UNAUTHENTICATED"
	CodeForbidden           Code = "FORBIDDEN"
	CodeHostRefused         Code = "HOST_REFUSED"
	CodeOriginRefused       Code = "ORIGIN_REFUSED"
	CodeForwardedRefused    Code = "FORWARDED_REFUSED"
	CodeHairpinRefused      Code = "HAIRPIN_REFUSED"
	CodeAlreadyExists       Code = "ALREADY_EXISTS"
	CodeConflict            Code = "CONFLICT"
	CodePreconditionNeeded  Code = "PRECONDITION_REQUIRED"
	CodePreconditionFailed  Code = "PRECONDITION_FAILED"
	CodeIdempotencyUnbuilt  Code = "IDEMPOTENCY_UNSUPPORTED"
	CodeQuotaExceeded       Code = "QUOTA_EXCEEDED"
	CodeRateExceeded        Code = "RATE_LIMIT_EXCEEDED"
	CodeRateUnavailable     Code = "RATE_LIMITER_UNAVAILABLE"
	CodePolicyStale         Code = "POLICY_STALE"
	CodeOverloaded          Code = "OVERLOADED"
	CodeNotReady            Code = "NOT_READY"
	CodeDraining            Code = "DRAINING"
	CodeTLSRequired         Code = "TLS_REQUIRED"
	CodeInternal            Code = "INTERNAL"
	CodeSchemaUnsupported   Code = "STORE_SCHEMA_UNSUPPORTED"
	CodeUnsupportedRule     Code = "UNSUPPORTED_RULE"
	CodeBuiltInImmutable    Code = "BUILTIN_IMMUTABLE"
	CodeCeilingLoosened     Code = "CEILING_LOOSENED"
	CodeEnvironmentUnusable Code = "ENVIRONMENT_UNAVAILABLE"
	CodeRequestNotGranted   Code = "ENVIRONMENT_REQUEST_NOT_GRANTED"
	CodeMarkerReserved      Code = "ENVIRONMENT_MARKER_RESERVED"
	CodeEnvironmentInUse    Code = "ENVIRONMENT_IN_USE"
)

// Admission.
const (
	CodeModuleRefused     Code = "MODULE_REFUSED"
	CodeModuleNotWasm     Code = "MODULE_NOT_WASM"
	CodeModuleText        Code = "MODULE_IS_TEXT"
	CodeModuleComponent   Code = "MODULE_IS_COMPONENT"
	CodeModuleMalformed   Code = "MODULE_MALFORMED"
	CodeModuleInvalid     Code = "MODULE_INVALID"
	CodeModuleLimit       Code = "MODULE_LIMIT"
	CodeModuleFeature     Code = "MODULE_FEATURE"
	CodeImportUnknown     Code = "IMPORT_UNKNOWN"
	CodeImportSignature   Code = "IMPORT_SIGNATURE"
	CodeImportAboveReach  Code = "IMPORT_ABOVE_REACH"
	CodeFaceMixed         Code = "FACE_MIXED"
	CodeExportMissing     Code = "EXPORT_MISSING"
	CodeExportSignature   Code = "EXPORT_SIGNATURE"
	CodeNameReserved      Code = "NAME_RESERVED"
	CodeManifestMissing   Code = "MANIFEST_MISSING"
	CodeManifestInvalid   Code = "MANIFEST_INVALID"
	CodeSchemaInvalid     Code = "SCHEMA_INVALID"
	CodeCompileFailed     Code = "COMPILE_FAILED"
	CodeCompileLimit      Code = "COMPILE_LIMIT"
	CodeStartRefused      Code = "START_REFUSED"
	CodeInitializeFailed  Code = "INITIALIZE_FAILED"
	CodeCapabilityTaken   Code = "CAPABILITY_TAKEN"
	CodeImageNotReady     Code = "IMAGE_NOT_READY"
	CodeBiomeDisabled     Code = "BIOME_DISABLED"
	CodeCapabilityRetired Code = "CAPABILITY_RETIRED"
	CodeUploadUnsupported Code = "UPLOAD_ENCODING_UNSUPPORTED"
)

// The decision.
const (
	CodeMissingGrant          Code = "MISSING_GRANT"
	CodeEnvironmentNotGranted Code = "ENVIRONMENT_NOT_GRANTED"
	CodeReachCeiling          Code = "REACH_CEILING_EXCEEDED"
	CodeClassificationCeiling Code = "CLASSIFICATION_CEILING_EXCEEDED"
	CodeNotInAllowList        Code = "CAPABILITY_NOT_IN_ENVIRONMENT_ALLOWLIST"
	CodeClassificationFlow    Code = "CLASSIFICATION_FLOW"
	CodeUnclassified          Code = "CAPABILITY_UNCLASSIFIED"
	CodeCapabilityUnknown     Code = "CAPABILITY_UNKNOWN"
	CodeInputSchema           Code = "INPUT_SCHEMA_VIOLATION"
	CodeGrantRevoked          Code = "GRANT_REVOKED"
	CodeAuditUnavailable      Code = "AUDIT_UNAVAILABLE"
	CodeSubjectNotCovered     Code = "SUBJECT_NOT_COVERED"
	CodeApprovalRequired      Code = "APPROVAL_REQUIRED"
	CodeApprovalRejected      Code = "APPROVAL_REJECTED"
	CodeApprovalStale         Code = "APPROVAL_STALE"
)

// Running a guest.
const (
	CodeDeadline        Code = "DEADLINE_EXCEEDED"
	CodeCanceled        Code = "CANCELED"
	CodeMemoryLimit     Code = "MEMORY_LIMIT"
	CodeStackLimit      Code = "STACK_LIMIT"
	CodeFuelExhausted   Code = "FUEL_EXHAUSTED"
	CodeInputLimit      Code = "INPUT_LIMIT"
	CodeOutputLimit     Code = "OUTPUT_LIMIT"
	CodeOutputMissing   Code = "OUTPUT_MISSING"
	CodeOutputInvalid   Code = "OUTPUT_INVALID"
	CodeHostCallLimit   Code = "HOST_CALL_LIMIT"
	CodeGuestTrap       Code = "GUEST_TRAP"
	CodeGuestError      Code = "GUEST_ERROR"
	CodeGuestExit       Code = "GUEST_EXIT"
	CodeRandomLimit     Code = "RANDOM_LIMIT"
	CodeChildDepth      Code = "CHILD_DEPTH_LIMIT"
	CodeChildLimit      Code = "CHILD_LIMIT"
	CodeChildCycle      Code = "CHILD_CYCLE"
	CodePointer         Code = "POINTER_OUT_OF_BOUNDS"
	CodeArgumentInvalid Code = "ARGUMENT_INVALID"
)

// Files and keys.
const (
	CodePathInvalid       Code = "PATH_INVALID"
	CodeResourceNotInGlob Code = "RESOURCE_NOT_IN_GLOB"
	CodeFileNotFound      Code = "FILE_NOT_FOUND"
	CodeFileExists        Code = "FILE_EXISTS"
	CodeReadRequired      Code = "READ_REQUIRED"
	CodeVersionMismatch   Code = "VERSION_MISMATCH"
	CodeDeletedSinceRead  Code = "DELETED_SINCE_READ"
	CodeDirectoryNotEmpty Code = "DIRECTORY_NOT_EMPTY"
	CodeNotRegular        Code = "NOT_REGULAR"
	CodeEditNoMatch       Code = "EDIT_NO_MATCH"
	CodeEditAmbiguous     Code = "EDIT_AMBIGUOUS"
	CodeEditEmpty         Code = "EDIT_EMPTY"
	CodeEditIdentical     Code = "EDIT_IDENTICAL"
	CodePatternInvalid    Code = "PATTERN_INVALID"
	CodeFileTooLarge      Code = "FILE_TOO_LARGE"
	CodeWorkspaceFull     Code = "WORKSPACE_FULL"
	CodeLedgerUnavailable Code = "LEDGER_UNAVAILABLE"
	CodeKeyInvalid        Code = "KEY_INVALID"
	CodeKeyNotFound       Code = "KEY_NOT_FOUND"
	CodeValueTooLarge     Code = "VALUE_TOO_LARGE"
	CodeKVFull            Code = "KV_FULL"
)

// Network and secrets.
const (
	CodeURLInvalid       Code = "URL_INVALID"
	CodeEndpointRefused  Code = "ENDPOINT_NOT_ALLOWED"
	CodeAddressRefused   Code = "ADDRESS_REFUSED"
	CodeHeaderRefused    Code = "HEADER_REFUSED"
	CodeHTTPBudget       Code = "HTTP_BUDGET_EXHAUSTED"
	CodeRequestTooLarge  Code = "REQUEST_TOO_LARGE"
	CodeResponseTooLarge Code = "RESPONSE_TOO_LARGE"
	CodeUpstreamTimeout  Code = "UPSTREAM_TIMEOUT"
	CodeUpstreamFailed   Code = "UPSTREAM_FAILED"
	CodeSecretDenied     Code = "SECRET_DENIED"
	CodeSecretEchoed     Code = "SECRET_ECHOED"
)

var codeTable = []CodeInfo{
	{CodeInvalidRequest, KindInvalidArgument, 400, EINVAL, "The request or one of its values is not of the documented form."},
	{CodeInvalidJSON, KindInvalidArgument, 400, EINVAL, "The body is not exactly one well-formed JSON value: syntax, duplicate keys, nesting, encoding or trailing data."},
	{CodeUnknownField, KindInvalidArgument, 400, EINVAL, "The document has a field the contract does not name."},
	{CodeUnsupportedMedia, KindInvalidArgument, 415, 0, "The content type is not the one this operation reads."},
	{CodePayloadTooLarge, KindResourceExhausted, 413, 0, "The request body is larger than the limit of this operation."},
	{CodeMethodNotAllowed, KindInvalidArgument, 405, 0, "The path exists, the method does not."},
	{CodeNotFound, KindNotFound, 404, ENOENT, "There is no such thing, or it is not yours to see."},
	{CodeUnauthenticated, KindUnauthenticated, 401, 0, "No valid credential was presented."},
	{CodeForbidden, KindPermissionDenied, 403, EDENIED, "The credential is valid and its role may not do this."},
	{CodeHostRefused, KindPermissionDenied, 421, 0, "The Host header names something this listener does not serve."},
	{CodeOriginRefused, KindPermissionDenied, 403, 0, "The request comes from a page of a foreign origin."},
	{CodeForwardedRefused, KindPermissionDenied, 403, 0, "A development session was used through a proxy."},
	{CodeHairpinRefused, KindPermissionDenied, 508, 0, "The request was sent by a guest of this very process."},
	{CodeAlreadyExists, KindAlreadyExists, 409, EEXIST, "Something with this name is there already."},
	{CodeConflict, KindConflict, 409, ECONFLICT, "The state the request assumes is not the state there is."},
	{CodePreconditionNeeded, KindInvalidArgument, 428, 0, "This change needs an If-Match header."},
	{CodePreconditionFailed, KindVersionMismatch, 412, 0, "What is to be changed is not as the request says: another version, there already, or with other permissions."},
	{CodeIdempotencyUnbuilt, KindInvalidArgument, 400, 0, "Idempotency-Key is not supported yet and is refused rather than ignored."},
	{CodeQuotaExceeded, KindResourceExhausted, 429, EQUOTA, "A count limit of the organisation is used up."},
	{CodeRateExceeded, KindResourceExhausted, 429, EQUOTA, "A rate limit of the subject, of its client or of a grant is used up for now."},
	{CodeRateUnavailable, KindNotReady, 503, EUNAVAIL, "The rate limiter cannot answer, so nothing runs."},
	{CodePolicyStale, KindNotReady, 503, EUNAVAIL, "The policy that is known may not be the newest, so nothing runs."},
	{CodeOverloaded, KindNotReady, 503, 0, "All places to run and to wait are taken."},
	{CodeNotReady, KindNotReady, 503, EUNAVAIL, "A part that is needed is not ready."},
	{CodeDraining, KindNotReady, 503, 0, "The server is shutting down and takes no new work."},
	{CodeTLSRequired, KindPermissionDenied, 403, 0, "An address that is not loopback is listened on with TLS only, and never in development mode."},
	{CodeInternal, KindInternal, 500, EINTERNAL, "Something went wrong inside the gateway; the audit id finds the detail."},
	{CodeSchemaUnsupported, KindConflict, 409, 0, "The data directory was written by another schema version and is left untouched."},
	{CodeUnsupportedRule, KindInvalidArgument, 422, 0, "A rule of a form that would not be enforced is refused, never stored."},
	{CodeBuiltInImmutable, KindPermissionDenied, 403, 0, "Slug, reach and family of a built-in environment cannot be changed."},
	{CodeCeilingLoosened, KindInvalidArgument, 422, 0, "A ceiling may be tightened, never loosened."},
	{CodeEnvironmentUnusable, KindPermissionDenied, 403, 0, "The environment is not available on this server or to this space."},
	{CodeRequestNotGranted, KindPermissionDenied, 403, 0, "No environment grant lets the principal ask for this environment and space."},
	{CodeMarkerReserved, KindInvalidArgument, 422, 0, "What marks an environment as the server's own is the server's to set."},
	{CodeEnvironmentInUse, KindConflict, 409, 0, "Sessions are open in the environment."},

	{CodeModuleRefused, KindInvalidArgument, 422, 0, "Admission refused the module; the report lists every problem with its offset."},
	{CodeModuleNotWasm, KindInvalidArgument, 422, 0, "The bytes are not a WebAssembly binary."},
	{CodeModuleText, KindInvalidArgument, 422, 0, "The bytes are the WebAssembly text format."},
	{CodeModuleComponent, KindInvalidArgument, 422, 0, "The bytes are a component, not a core module."},
	{CodeModuleMalformed, KindInvalidArgument, 422, 0, "The binary's structure is broken."},
	{CodeModuleInvalid, KindInvalidArgument, 422, 0, "The module does not validate."},
	{CodeModuleLimit, KindResourceExhausted, 422, 0, "The module is over a structural limit."},
	{CodeModuleFeature, KindInvalidArgument, 422, 0, "The module uses a proposal the host does not accept."},
	{CodeImportUnknown, KindInvalidArgument, 422, 0, "An import is not in the ABI."},
	{CodeImportSignature, KindInvalidArgument, 422, 0, "An import has another type than the ABI gives it."},
	{CodeImportAboveReach, KindPermissionDenied, 422, 0, "A host function is imported that is above the highest reach the manifest declares."},
	{CodeFaceMixed, KindInvalidArgument, 422, 0, "The module imports from another interface than the one its manifest names."},
	{CodeExportMissing, KindInvalidArgument, 422, 0, "An export the contract needs is not there."},
	{CodeExportSignature, KindInvalidArgument, 422, 0, "An export has another type than the contract gives it."},
	{CodeNameReserved, KindInvalidArgument, 422, 0, "A name uses a prefix that is reserved for the host."},
	{CodeManifestMissing, KindInvalidArgument, 422, 0, "The module carries no ecotone.manifest section."},
	{CodeManifestInvalid, KindInvalidArgument, 422, 0, "The manifest does not satisfy its contract; every problem is listed."},
	{CodeSchemaInvalid, KindInvalidArgument, 422, 0, "A capability's JSON Schema is invalid, refers outside itself or is over its bound."},
	{CodeCompileFailed, KindInvalidArgument, 422, 0, "The engine could not compile the module."},
	{CodeCompileLimit, KindResourceExhausted, 422, 0, "Compiling took more processor time, wall time or memory than allowed."},
	{CodeStartRefused, KindInvalidArgument, 422, 0, "The module has a start function or exports both faces; initialisation belongs into _initialize."},
	{CodeInitializeFailed, KindInvalidArgument, 422, 0, "_initialize trapped, called a host function of an invocation or did not end in its budget."},
	{CodeCapabilityTaken, KindAlreadyExists, 409, 0, "Another biome already provides this capability; the first stays."},
	{CodeImageNotReady, KindNotReady, 503, 0, "The compiled form is being rebuilt; no invocation ever compiles."},
	{CodeBiomeDisabled, KindPermissionDenied, 403, 0, "The biome is disabled."},
	{CodeCapabilityRetired, KindPermissionDenied, 403, EDENIED, "The capability is retired; the denial names its successor, if it has one."},
	{CodeUploadUnsupported, KindInvalidArgument, 415, 0, "The upload's content encoding is not accepted."},

	{CodeMissingGrant, KindPermissionDenied, 403, EDENIED, "No grant lets this subject invoke this capability in this environment."},
	{CodeEnvironmentNotGranted, KindPermissionDenied, 403, EDENIED, "The biome's install grant does not admit this environment."},
	{CodeReachCeiling, KindPermissionDenied, 403, EDENIED, "The reach is above the environment's ceiling."},
	{CodeClassificationCeiling, KindPermissionDenied, 403, EDENIED, "The data is classified above the ceiling."},
	{CodeNotInAllowList, KindPermissionDenied, 403, EDENIED, "The environment names the capabilities it admits, and this is not one of them."},
	{CodeClassificationFlow, KindPermissionDenied, 403, EDENIED, "Data would flow to a sink that is cleared for less."},
	{CodeUnclassified, KindPermissionDenied, 403, EDENIED, "The catalogue cannot say the capability's reach, and the environment is a boundary."},
	{CodeCapabilityUnknown, KindNotFound, 404, ENOENT, "There is no such capability, or nothing says you may know of it."},
	{CodeInputSchema, KindInvalidArgument, 400, EINVAL, "The input does not satisfy the capability's schema."},
	{CodeGrantRevoked, KindPermissionDenied, 403, ECANCELED, "The authority of the running invocation was withdrawn."},
	{CodeAuditUnavailable, KindNotReady, 503, EUNAVAIL, "The audit log cannot be written, so nothing runs."},
	{CodeSubjectNotCovered, KindPermissionDenied, 403, EDENIED, "The user an agent acts for is not covered, and an agent never exceeds its user."},
	{CodeApprovalRequired, KindPermissionDenied, 403, EDENIED, "A person has to approve the invocation first. It waits, which is 202 and no problem document; what a biome calls cannot wait, and is denied."},
	{CodeApprovalRejected, KindPermissionDenied, 403, EDENIED, "A person rejected it, and that is final."},
	{CodeApprovalStale, KindConflict, 409, 0, "What was approved changed, expired or was used: the approval is void."},

	{CodeDeadline, KindResourceExhausted, 504, ETIMEOUT, "The invocation did not end before its deadline."},
	{CodeCanceled, KindConflict, 409, ECANCELED, "The invocation was cancelled."},
	{CodeMemoryLimit, KindResourceExhausted, 422, 0, "The module needs more memory than the environment allows."},
	{CodeStackLimit, KindResourceExhausted, 502, 0, "The guest's call stack reached its limit."},
	{CodeFuelExhausted, KindResourceExhausted, 502, 0, "The invocation used up its fuel: what it computes and what it asks of the host, in one measure. The same call ends the same way however fast the machine is."},
	{CodeInputLimit, KindResourceExhausted, 413, ETOOBIG, "The input is larger than the limit."},
	{CodeOutputLimit, KindResourceExhausted, 502, ETOOBIG, "The guest's output is larger than the limit."},
	{CodeOutputMissing, KindInternal, 502, 0, "The guest ended without an output."},
	{CodeOutputInvalid, KindInternal, 502, 0, "The guest's output is not exactly one JSON value of the declared schema."},
	{CodeHostCallLimit, KindResourceExhausted, 502, EQUOTA, "The invocation used up its host calls."},
	{CodeGuestTrap, KindInternal, 502, 0, "The guest trapped."},
	{CodeGuestError, KindInvalidArgument, 422, 0, "The capability itself answered with an error; its text is the capability's own."},
	{CodeGuestExit, KindInternal, 502, 0, "The guest ended its process instead of returning."},
	{CodeRandomLimit, KindResourceExhausted, 502, EQUOTA, "The invocation used up its random bytes."},
	{CodeChildDepth, KindResourceExhausted, 502, EQUOTA, "Invocations are nested deeper than allowed."},
	{CodeChildLimit, KindResourceExhausted, 502, EQUOTA, "The invocation used up its child invocations."},
	{CodeChildCycle, KindConflict, 409, EDENIED, "A capability would invoke itself through its own chain."},
	{CodePointer, KindInvalidArgument, 502, EFAULT, "A pointer and length given to a host function lie outside the guest's memory."},
	{CodeArgumentInvalid, KindInvalidArgument, 502, EINVAL, "An argument of a host call is not of the documented form."},

	{CodePathInvalid, KindInvalidArgument, 400, EINVAL, "The path is absolute, escapes the workspace, or has forbidden bytes."},
	{CodeResourceNotInGlob, KindPermissionDenied, 403, EDENIED, "The resource is outside what the grant names."},
	{CodeFileNotFound, KindNotFound, 404, ENOENT, "There is no such file, or it is above what this invocation may see."},
	{CodeFileExists, KindAlreadyExists, 409, EEXIST, "The destination is there already."},
	{CodeReadRequired, KindConflict, 409, EREAD, "An existing file is overwritten only after it was read in this session."},
	{CodeVersionMismatch, KindVersionMismatch, 412, EVERSION, "The file changed after it was read."},
	{CodeDeletedSinceRead, KindVersionMismatch, 412, EDELETED, "The file was deleted after it was read."},
	{CodeDirectoryNotEmpty, KindDirectoryNotEmpty, 409, ENOTEMPTY, "Only empty directories are removed."},
	{CodeNotRegular, KindInvalidArgument, 400, ENOTREG, "The operation works on regular files only."},
	{CodeEditNoMatch, KindConflict, 409, ENOMATCH, "The text to replace does not occur."},
	{CodeEditAmbiguous, KindConflict, 409, EAMBIGUOUS, "The text to replace occurs more than once; the count is given."},
	{CodeEditEmpty, KindInvalidArgument, 400, EEMPTY, "The text to replace is empty."},
	{CodeEditIdentical, KindInvalidArgument, 400, ESAME, "The old and the new text are the same."},
	{CodePatternInvalid, KindInvalidArgument, 400, EINVAL, "The pattern does not compile or is over its bound."},
	{CodeFileTooLarge, KindResourceExhausted, 413, ETOOBIG, "The file would be larger than allowed."},
	{CodeWorkspaceFull, KindResourceExhausted, 507, EQUOTA, "The workspace has no room for more bytes or entries."},
	{CodeLedgerUnavailable, KindNotReady, 503, EUNAVAIL, "The read ledger cannot answer; that is not the same as never read."},
	{CodeKeyInvalid, KindInvalidArgument, 400, EINVAL, "The key is empty, too long or has forbidden bytes."},
	{CodeKeyNotFound, KindNotFound, 404, ENOENT, "There is no such key, or it is above what this invocation may see."},
	{CodeValueTooLarge, KindResourceExhausted, 413, ETOOBIG, "The value is larger than allowed."},
	{CodeKVFull, KindResourceExhausted, 507, EQUOTA, "The key space has no room for more keys or bytes."},

	{CodeURLInvalid, KindInvalidArgument, 400, EINVAL, "The URL is not in canonical form or uses something that is not allowed in one."},
	{CodeEndpointRefused, KindPermissionDenied, 403, EDENIED, "No endpoint rule allows this request."},
	{CodeAddressRefused, KindPermissionDenied, 403, EDENIED, "The name resolves to an address that is never dialled."},
	{CodeHeaderRefused, KindInvalidArgument, 400, EINVAL, "A request header is one the host sets or forbids."},
	{CodeHTTPBudget, KindResourceExhausted, 502, EQUOTA, "The invocation used up its outgoing requests."},
	{CodeRequestTooLarge, KindResourceExhausted, 502, ETOOBIG, "The outgoing request is larger than allowed."},
	{CodeResponseTooLarge, KindResourceExhausted, 502, ETOOBIG, "The origin's response is larger than allowed."},
	{CodeUpstreamTimeout, KindResourceExhausted, 504, ETIMEOUT, "The origin did not answer in time."},
	{CodeUpstreamFailed, KindInternal, 502, EIO, "The origin could not be reached or broke the protocol."},
	{CodeSecretDenied, KindPermissionDenied, 403, ESECRET, "The secret is not there, not bound to this biome, or not for this use."},
	{CodeSecretEchoed, KindPermissionDenied, 403, ESECRET, "The origin sent the secret back; the response is discarded and the invocation ends."},
}

var codeIndex = func() map[Code]*CodeInfo {
	m := make(map[Code]*CodeInfo, len(codeTable))
	for i := range codeTable {
		if m[codeTable[i].Code] != nil {
			panic("abi: code twice in the catalogue: " + string(codeTable[i].Code))
		}
		m[codeTable[i].Code] = &codeTable[i]
	}
	return m
}()

// Codes returns the catalogue in its documented order. The caller must not change it.
func Codes() []CodeInfo { return codeTable }

// Info returns the catalogue row of c.
func (c Code) Info() (CodeInfo, bool) {
	if i := codeIndex[c]; i != nil {
		return *i, true
	}
	return CodeInfo{Code: c, Kind: KindInternal, Status: 500, Errno: EINTERNAL}, false
}

// Errno returns what a guest sees for c; a code that guests never see is EINTERNAL.
func (c Code) Errno() Errno {
	i, _ := c.Info()
	if i.Errno == 0 {
		return EINTERNAL
	}
	return i.Errno
}
