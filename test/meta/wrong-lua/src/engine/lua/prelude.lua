local unused_by_all = 1
local used = {@KEY_FIELDS@}
