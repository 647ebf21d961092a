-- For scripts/check-lua: what Redis gives to scripts.
std = 'lua51'
read_globals = {'redis', 'KEYS', 'ARGV', 'cjson', 'struct', 'cmsgpack', 'bit'}
max_line_length = false
