package abi

import (
	"encoding/json"
	"sort"
)

// Limit indexes the table of limits. Every limit that is accepted is enforced where
// its row says, and ends in its code.
type Limit uint8

const (
	LimitModuleBytes Limit = iota
	LimitUploadBytes
	LimitBodyBytes
	LimitLocals
	LimitNesting
	LimitBrTable
	LimitBlocks
	LimitFunctions
	LimitTypes
	LimitImports
	LimitExports
	LimitGlobals
	LimitDataSegments
	LimitElementSegments
	LimitCustomSections
	LimitNameBytes
	LimitMemories
	LimitMemoryBytes
	LimitTables
	LimitTableEntries
	LimitCompileCPU
	LimitCompileWall
	LimitCompileMemory
	LimitWall
	LimitFuel
	LimitStackBytes
	LimitInputBytes
	LimitOutputBytes
	LimitLogLineBytes
	LimitLogBytes
	LimitHostCalls
	LimitRandomBytes
	LimitChildDepth
	LimitChildren
	LimitHTTPWall
	LimitHTTPBytes
	LimitHTTPRequests
	LimitWorkspaceBytes
	LimitWorkspaceEntries
	LimitFileBytes
	LimitKeys
	LimitKeyBytes
	LimitValueBytes
	LimitKVBytes
	LimitRunning
	LimitWaiting
	LimitSessions
	LimitPendingApprovals
	LimitUploads
	LimitDiskReserve
	numLimits
)

// LimitInfo is one row of the table of limits.
type LimitInfo struct {
	Limit   Limit
	Name    string // as configuration and documents name it
	Unit    string // bytes, count, ms, fuel
	Default int64
	Hard    int64 // what configuration may raise it to; 0: the operator decides, up to [OperatorMax]
	Scope   string
	Code    Code
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// OperatorMax bounds the limits that are the operator's to choose: large enough for any
// machine, and small enough that milliseconds still fit a time.Duration.
const OperatorMax = 1 << 40

// Scopes of limits.
const (
	ScopeUpload      = "upload"      // judged once, at admission
	ScopeEnvironment = "environment" // resolved from the environment for each invocation
	ScopeServer      = "server"      // one value for the process
)

var limitTable = [numLimits]LimitInfo{
	LimitModuleBytes:      {Name: "moduleBytes", Unit: "bytes", Default: 8 * mib, Hard: 32 * mib, Scope: ScopeUpload, Code: CodePayloadTooLarge},
	LimitUploadBytes:      {Name: "uploadBytes", Unit: "bytes", Default: 8 * mib, Hard: 32 * mib, Scope: ScopeUpload, Code: CodePayloadTooLarge},
	LimitBodyBytes:        {Name: "functionBodyBytes", Unit: "bytes", Default: 256 * kib, Hard: 256 * kib, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitLocals:           {Name: "locals", Unit: "count", Default: 4096, Hard: 4096, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitNesting:          {Name: "nesting", Unit: "count", Default: 4096, Hard: 4096, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitBrTable:          {Name: "brTable", Unit: "count", Default: 8192, Hard: 8192, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitBlocks:           {Name: "blocks", Unit: "count", Default: 8192, Hard: 8192, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitFunctions:        {Name: "functions", Unit: "count", Default: 50_000, Hard: 50_000, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitTypes:            {Name: "types", Unit: "count", Default: 10_000, Hard: 10_000, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitImports:          {Name: "imports", Unit: "count", Default: 64, Hard: 64, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitExports:          {Name: "exports", Unit: "count", Default: 256, Hard: 256, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitGlobals:          {Name: "globals", Unit: "count", Default: 4096, Hard: 4096, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitDataSegments:     {Name: "dataSegments", Unit: "count", Default: 120_000, Hard: 120_000, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitElementSegments:  {Name: "elementSegments", Unit: "count", Default: 4096, Hard: 4096, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitCustomSections:   {Name: "customSections", Unit: "count", Default: 64, Hard: 64, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitNameBytes:        {Name: "nameBytes", Unit: "bytes", Default: 512, Hard: 512, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitMemories:         {Name: "memories", Unit: "count", Default: 1, Hard: 1, Scope: ScopeUpload, Code: CodeModuleFeature},
	LimitMemoryBytes:      {Name: "memoryBytes", Unit: "bytes", Default: 16 * mib, Hard: 256 * mib, Scope: ScopeEnvironment, Code: CodeMemoryLimit},
	LimitTables:           {Name: "tables", Unit: "count", Default: 4, Hard: 4, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitTableEntries:     {Name: "tableEntries", Unit: "count", Default: 100_000, Hard: 100_000, Scope: ScopeUpload, Code: CodeModuleLimit},
	LimitCompileCPU:       {Name: "compileCpu", Unit: "ms", Default: 10_000, Scope: ScopeServer, Code: CodeCompileLimit},
	LimitCompileWall:      {Name: "compileWall", Unit: "ms", Default: 30_000, Scope: ScopeServer, Code: CodeCompileLimit},
	LimitCompileMemory:    {Name: "compileMemory", Unit: "bytes", Default: 2 * gib, Scope: ScopeServer, Code: CodeCompileLimit},
	LimitWall:             {Name: "wall", Unit: "ms", Default: 5_000, Hard: 600_000, Scope: ScopeEnvironment, Code: CodeDeadline},
	LimitFuel:             {Name: "fuel", Unit: "fuel", Default: 20_000_000_000, Hard: OperatorMax, Scope: ScopeEnvironment, Code: CodeFuelExhausted},
	LimitStackBytes:       {Name: "stackBytes", Unit: "bytes", Default: 16 * mib, Hard: 64 * mib, Scope: ScopeEnvironment, Code: CodeStackLimit},
	LimitInputBytes:       {Name: "inputBytes", Unit: "bytes", Default: mib, Hard: 32 * mib, Scope: ScopeEnvironment, Code: CodeInputLimit},
	LimitOutputBytes:      {Name: "outputBytes", Unit: "bytes", Default: mib, Hard: 32 * mib, Scope: ScopeEnvironment, Code: CodeOutputLimit},
	LimitLogLineBytes:     {Name: "logLineBytes", Unit: "bytes", Default: 4 * kib, Hard: 64 * kib, Scope: ScopeEnvironment},
	LimitLogBytes:         {Name: "logBytes", Unit: "bytes", Default: 64 * kib, Hard: mib, Scope: ScopeEnvironment},
	LimitHostCalls:        {Name: "hostCalls", Unit: "count", Default: 10_000, Hard: 1_000_000, Scope: ScopeEnvironment, Code: CodeHostCallLimit},
	LimitRandomBytes:      {Name: "randomBytes", Unit: "bytes", Default: mib, Hard: 16 * mib, Scope: ScopeEnvironment, Code: CodeRandomLimit},
	LimitChildDepth:       {Name: "childDepth", Unit: "count", Default: 4, Hard: 16, Scope: ScopeEnvironment, Code: CodeChildDepth},
	LimitChildren:         {Name: "children", Unit: "count", Default: 32, Hard: 1024, Scope: ScopeEnvironment, Code: CodeChildLimit},
	LimitHTTPWall:         {Name: "httpWall", Unit: "ms", Default: 3_000, Hard: 60_000, Scope: ScopeEnvironment, Code: CodeUpstreamTimeout},
	LimitHTTPBytes:        {Name: "httpBytes", Unit: "bytes", Default: mib, Hard: 32 * mib, Scope: ScopeEnvironment, Code: CodeResponseTooLarge},
	LimitHTTPRequests:     {Name: "httpRequests", Unit: "count", Default: 5, Hard: 100, Scope: ScopeEnvironment, Code: CodeHTTPBudget},
	LimitWorkspaceBytes:   {Name: "workspaceBytes", Unit: "bytes", Default: 64 * mib, Hard: 16 * gib, Scope: ScopeEnvironment, Code: CodeWorkspaceFull},
	LimitWorkspaceEntries: {Name: "workspaceEntries", Unit: "count", Default: 10_000, Hard: 1_000_000, Scope: ScopeEnvironment, Code: CodeWorkspaceFull},
	LimitFileBytes:        {Name: "fileBytes", Unit: "bytes", Default: 5 * mib, Hard: 64 * mib, Scope: ScopeEnvironment, Code: CodeFileTooLarge},
	LimitKeys:             {Name: "keys", Unit: "count", Default: 10_000, Hard: 1_000_000, Scope: ScopeEnvironment, Code: CodeKVFull},
	LimitKeyBytes:         {Name: "keyBytes", Unit: "bytes", Default: 512, Hard: 1024, Scope: ScopeEnvironment, Code: CodeKeyInvalid},
	LimitValueBytes:       {Name: "valueBytes", Unit: "bytes", Default: 256 * kib, Hard: mib, Scope: ScopeEnvironment, Code: CodeValueTooLarge},
	LimitKVBytes:          {Name: "kvBytes", Unit: "bytes", Default: 64 * mib, Hard: 16 * gib, Scope: ScopeEnvironment, Code: CodeKVFull},
	LimitRunning:          {Name: "running", Unit: "count", Default: 64, Scope: ScopeServer, Code: CodeOverloaded},
	LimitWaiting:          {Name: "waiting", Unit: "count", Default: 256, Scope: ScopeServer, Code: CodeOverloaded},
	LimitSessions:         {Name: "sessions", Unit: "count", Default: 10_000, Scope: ScopeServer, Code: CodeQuotaExceeded},
	LimitUploads:          {Name: "uploads", Unit: "count", Default: 10_000, Scope: ScopeServer, Code: CodeQuotaExceeded},
	LimitPendingApprovals: {Name: "pendingApprovals", Unit: "count", Default: 1_000, Scope: ScopeServer, Code: CodeQuotaExceeded},
	LimitDiskReserve:      {Name: "diskReserve", Unit: "bytes", Default: 256 * mib, Scope: ScopeServer, Code: CodeAuditUnavailable},
}

func init() {
	for i := range limitTable {
		if limitTable[i].Name == "" {
			panic("abi: a limit has no row")
		}
		limitTable[i].Limit = Limit(i)
	}
}

// LimitTable returns the limits in their documented order.
func LimitTable() []LimitInfo { return limitTable[:] }

// Info returns the limit's row.
func (l Limit) Info() LimitInfo { return limitTable[l] }

// Limits holds one resolved value for every limit. The zero value admits nothing;
// start from [DefaultLimits].
type Limits [numLimits]int64

// DefaultLimits returns the table's defaults.
func DefaultLimits() Limits {
	var l Limits
	for i := range limitTable {
		l[i] = limitTable[i].Default
	}
	return l
}

// Get returns the value of one limit in its unit.
func (l *Limits) Get(which Limit) int64 { return l[which] }

// Tighten returns, limit by limit, the smaller of l and other.
func (l Limits) Tighten(other Limits) Limits {
	for i := range l {
		l[i] = min(l[i], other[i])
	}
	return l
}

// Set changes one limit. It refuses values below 1 and above the hard maximum: there is
// no value that means unlimited (PF-H10, PF-D1).
func (l *Limits) Set(name string, value int64) error {
	for i := range limitTable {
		row := &limitTable[i]
		if row.Name != name {
			continue
		}
		hard := row.Hard
		if hard == 0 {
			hard = OperatorMax
		}
		if value < 1 || value > hard {
			return Errorf(CodeInvalidRequest, "limit %s must be from 1 to %d, in %s", name, hard, row.Unit).At("/" + name)
		}
		l[i] = value
		return nil
	}
	return Errorf(CodeUnknownField, "unknown limit %s", Quote(name)).At("/" + name)
}

// MarshalJSON writes every limit by name, sorted.
func (l Limits) MarshalJSON() ([]byte, error) {
	m := make(map[string]int64, len(l))
	for i := range l {
		m[limitTable[i].Name] = l[i]
	}
	return json.Marshal(m)
}

// UnmarshalJSON applies the named limits over the defaults; unknown names are refused.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var m map[string]int64
	if err := json.Unmarshal(data, &m); err != nil {
		return Errorf(CodeInvalidRequest, "limits are an object of whole numbers: %w", err)
	}
	out := DefaultLimits()
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		if err := out.Set(n, m[n]); err != nil {
			return err
		}
	}
	*l = out
	return nil
}
