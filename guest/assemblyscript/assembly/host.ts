// The host functions as WebAssembly sees them. Each returns zero or more, a length or a value, or a
// negated Errno. Strings and buffers are a pointer and a length; the classes in index.ts take care.

// @ts-ignore: decorator
@external("ecotone_v1", "input") export declare function input(): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "result_read") export declare function result_read(ptr: usize, off: u32, len: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "result_meta") export declare function result_meta(ptr: usize, off: u32, len: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "output") export declare function output(dataPtr: usize, dataLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "error") export declare function error(codePtr: usize, codeLen: u32, messagePtr: usize, messageLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "log") export declare function log(level: i32, messagePtr: usize, messageLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "time_now") export declare function time_now(): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "random") export declare function random(ptr: usize, len: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "kv_get") export declare function kv_get(keyPtr: usize, keyLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "kv_put") export declare function kv_put(keyPtr: usize, keyLen: u32, valuePtr: usize, valueLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "kv_delete") export declare function kv_delete(keyPtr: usize, keyLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "kv_list") export declare function kv_list(prefixPtr: usize, prefixLen: u32, afterPtr: usize, afterLen: u32, limit: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_stat") export declare function file_stat(pathPtr: usize, pathLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_read") export declare function file_read(pathPtr: usize, pathLen: u32, off: i64, len: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_list") export declare function file_list(pathPtr: usize, pathLen: u32, afterPtr: usize, afterLen: u32, limit: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_create") export declare function file_create(pathPtr: usize, pathLen: u32, dataPtr: usize, dataLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_write") export declare function file_write(pathPtr: usize, pathLen: u32, dataPtr: usize, dataLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_replace") export declare function file_replace(pathPtr: usize, pathLen: u32, versionPtr: usize, versionLen: u32, dataPtr: usize, dataLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_edit") export declare function file_edit(pathPtr: usize, pathLen: u32, oldPtr: usize, oldLen: u32, newPtr: usize, newLen: u32, all: i32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_copy") export declare function file_copy(fromPtr: usize, fromLen: u32, toPtr: usize, toLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_move") export declare function file_move(fromPtr: usize, fromLen: u32, toPtr: usize, toLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_remove") export declare function file_remove(pathPtr: usize, pathLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_mkdir") export declare function file_mkdir(pathPtr: usize, pathLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_grep") export declare function file_grep(patternPtr: usize, patternLen: u32, globPtr: usize, globLen: u32, limit: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "file_glob") export declare function file_glob(globPtr: usize, globLen: u32, limit: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "capability_invoke") export declare function capability_invoke(refPtr: usize, refLen: u32, inputPtr: usize, inputLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "http_fetch") export declare function http_fetch(requestPtr: usize, requestLen: u32, bodyPtr: usize, bodyLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "secret_hmac") export declare function secret_hmac(namePtr: usize, nameLen: u32, messagePtr: usize, messageLen: u32): i64;
// @ts-ignore: decorator
@external("ecotone_v1", "audit_query") export declare function audit_query(queryPtr: usize, queryLen: u32): i64;
