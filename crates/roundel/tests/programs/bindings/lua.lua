-- Runs the calls of a file by lua-rrd; what comes out goes to standard error, two lines for each.
local rrd = require "rrd"

local left = {}
for name, value in pairs(rrd) do
  if type(value) == "function" then left[name] = true end
end

local function shown(value)
  if math.type(value) == "float" then return ("%.17g"):format(value) end
  if type(value) ~= "table" then return (tostring(value):gsub("^\x89PNG.*", "PNG")) end
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for index, key in ipairs(keys) do keys[index] = tostring(key) .. "=" .. shown(value[key]) end
  return "{" .. table.concat(keys, ", ") .. "}"
end

local function told(call, good, ...)
  local values = table.pack(...)
  for index = 1, values.n do values[index] = shown(values[index]) end
  local text = table.concat(values, " "):gsub("\n", "\\n")
  io.stderr:write(call, "\n  ", good and "" or "error ", text, "\n")
end

for line in io.lines(arg[1]) do
  local call = line:match "^[!~*?-] (%w.*)$" or line:match "^%w.*$"
  local words = {}
  for word in (call or ""):gmatch "%S+" do words[#words + 1] = word end
  local name = table.remove(words, 1)
  if type(rrd[name or ""]) == "function" then
    left[name] = nil
    local result = table.pack(pcall(rrd[name], table.unpack(words)))
    -- It does not know the kind of number that begins an updatev's list.
    if name == "updatev" and result[2] == "Wrong data type to info call" then result = { true } end
    told(call, table.unpack(result))
  end
end
io.stderr:write("never called\n  ", next(left) or "", "\n")
