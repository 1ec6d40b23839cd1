# Runs the calls of a file by ruby-rrd; what comes out goes to standard error, two lines for each.
require "RRD"

def shown(value)
  case value
  when Array then "[#{value.map { |one| shown(one) }.join(", ")}]"
  when Hash then "{#{value.sort.map { |key, one| "#{key}=#{shown(one)}" }.join(", ")}}"
  when String then value.b.start_with?("\x89PNG".b) ? "PNG" : value
  else value.inspect
  end
end

def told(call)
  result = shown(yield)
rescue StandardError => error
  result = "error #{error.class} #{error.message}"
ensure
  STDERR.puts call, "  #{result.gsub("\n", "\\n")}"
end

names = RRD.methods(false).map(&:to_s)
left = names.dup
File.foreach(ARGV[0], chomp: true) do |line|
  next unless (match = line.match(/^(?:[!~*?-] )?(\w.*)$/))
  name, *words = match[1].split
  next unless names.include?(name)
  left.delete(name)
  told(match[1]) do
    result = RRD.public_send(name, *words)
    # It reads a row more than there is.
    result[3].pop if name == "fetch"
    result[5].pop if name == "xport"
    result
  end
end
STDERR.puts "never called", "  #{left.join(" ")}"
