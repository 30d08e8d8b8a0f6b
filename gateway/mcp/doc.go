// Package mcp is the face for agents: the Model Context Protocol over streamable HTTP, stateless, in the
// versions 2026-07-28 and 2025-11-25.
//
// A caller that only knows the address and a session's token finds what it may invoke, invokes it, and is
// told of a refusal in a form that it can act on. There are two shapes, each at a path of its own: direct,
// where every capability the caller may invoke is a tool, and meta, six constant tools however many biomes
// there are (X60).
//
// It promises that every request carries a session's token (PF-A13); that what it lists is what
// [invoke.Pipeline] lists, and what it calls goes through the same pipeline as an invocation over HTTP, also
// where a tool names the capability in its arguments (PF-A8); that there is no tool with which anything is
// granted or approved (PF-A22); that text of a biome's author is marked as such; and that what a guest
// answers is one JSON value within one response, never a frame (PF-A6).
//
// It refuses to know how anything is decided. It keeps nothing between requests but which calls of a session
// wait for an approver, so that the same call again finds them.
package mcp
