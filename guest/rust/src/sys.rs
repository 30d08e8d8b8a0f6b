//! The host functions as WebAssembly sees them.

#![allow(missing_docs)]

#[cfg(target_arch = "wasm32")]
#[link(wasm_import_module = "ecotone_v1")]
extern "C" {
    pub fn input() -> i64;
    pub fn result_read(ptr: *mut u8, off: usize, len: usize) -> i64;
    pub fn result_meta(ptr: *mut u8, off: usize, len: usize) -> i64;
    pub fn output(data_ptr: *const u8, data_len: usize) -> i64;
    pub fn error(code_ptr: *const u8, code_len: usize, message_ptr: *const u8, message_len: usize) -> i64;
    pub fn log(level: i32, message_ptr: *const u8, message_len: usize) -> i64;
    pub fn time_now() -> i64;
    pub fn random(ptr: *mut u8, len: usize) -> i64;
    pub fn kv_get(key_ptr: *const u8, key_len: usize) -> i64;
    pub fn kv_put(key_ptr: *const u8, key_len: usize, value_ptr: *const u8, value_len: usize) -> i64;
    pub fn kv_delete(key_ptr: *const u8, key_len: usize) -> i64;
    pub fn kv_list(prefix_ptr: *const u8, prefix_len: usize, after_ptr: *const u8, after_len: usize, limit: u32) -> i64;
    pub fn file_stat(path_ptr: *const u8, path_len: usize) -> i64;
    pub fn file_read(path_ptr: *const u8, path_len: usize, off: i64, len: usize) -> i64;
    pub fn file_list(path_ptr: *const u8, path_len: usize, after_ptr: *const u8, after_len: usize, limit: u32) -> i64;
    pub fn file_create(path_ptr: *const u8, path_len: usize, data_ptr: *const u8, data_len: usize) -> i64;
    pub fn file_write(path_ptr: *const u8, path_len: usize, data_ptr: *const u8, data_len: usize) -> i64;
    pub fn file_replace(path_ptr: *const u8, path_len: usize, version_ptr: *const u8, version_len: usize, data_ptr: *const u8, data_len: usize) -> i64;
    pub fn file_edit(path_ptr: *const u8, path_len: usize, old_ptr: *const u8, old_len: usize, new_ptr: *const u8, new_len: usize, all: i32) -> i64;
    pub fn file_copy(from_ptr: *const u8, from_len: usize, to_ptr: *const u8, to_len: usize) -> i64;
    pub fn file_move(from_ptr: *const u8, from_len: usize, to_ptr: *const u8, to_len: usize) -> i64;
    pub fn file_remove(path_ptr: *const u8, path_len: usize) -> i64;
    pub fn file_mkdir(path_ptr: *const u8, path_len: usize) -> i64;
    pub fn file_grep(pattern_ptr: *const u8, pattern_len: usize, glob_ptr: *const u8, glob_len: usize, limit: u32) -> i64;
    pub fn file_glob(glob_ptr: *const u8, glob_len: usize, limit: u32) -> i64;
    pub fn capability_invoke(ref_ptr: *const u8, ref_len: usize, input_ptr: *const u8, input_len: usize) -> i64;
    pub fn http_fetch(request_ptr: *const u8, request_len: usize, body_ptr: *const u8, body_len: usize) -> i64;
    pub fn secret_hmac(name_ptr: *const u8, name_len: usize, message_ptr: *const u8, message_len: usize) -> i64;
    pub fn audit_query(query_ptr: *const u8, query_len: usize) -> i64;
}
