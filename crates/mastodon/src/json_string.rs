/// The index after a JSON string that begins at `start`; `None` if it does not end.
pub fn end_of_string(json: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        match json[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}
