// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/counters/sass.h"

#include "core/device/counters/pcsampler.h"
#include "core/files/atomicfile.h"
#include "core/process/childprocess.h"
#include "core/process/scratchfolder.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sys/resource.h>
#include <unistd.h>

namespace klineage::gate::counters {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t mostListingBytes = std::size_t{64} << 20;
constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30;

std::string_view trimmed(std::string_view text)
{
    const auto begin = text.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos)
        return {};
    return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

template <typename Number>
bool readNumber(std::string_view text, Number &value, int base)
{
    return std::from_chars(text.data(), text.data() + text.size(), value, base).ec == std::errc();
}

/// `//## File "…/K03.cu", line 41`, perhaps followed by ` inlined at "…", line 52`: the first place in the candidate's own file.
int lineOfMark(std::string_view mark, const std::string &file)
{
    for (std::size_t at = mark.find('"'); at != std::string_view::npos; at = mark.find('"', at + 1)) {
        const std::size_t end = mark.find('"', at + 1);
        if (end == std::string_view::npos)
            return 0;
        const std::string_view name = mark.substr(at + 1, end - at - 1);
        constexpr std::string_view word = ", line ";
        int line = 0;
        if (fs::path(name).filename() == fs::path(file).filename()
            && mark.substr(end + 1, word.size()) == word
            && readNumber(mark.substr(end + 1 + word.size()), line, 10))
            return std::max(line, 0);
        at = end;
    }
    return 0;
}

class ListingReader
{
public:
    explicit ListingReader(const std::string &file)
        : m_file(file)
    {}

    void read(std::string_view line)
    {
        const std::string_view text = trimmed(line);
        constexpr std::string_view section = ".text.";
        constexpr std::string_view function = "Function : ";
        if (text.substr(0, section.size()) == section && text.back() == ':') {
            begin(text.substr(section.size(), text.size() - section.size() - 1));
        } else if (text.substr(0, function.size()) == function) {
            begin(text.substr(function.size()));
        } else if (text.substr(0, 4) == "//##") {
            // A mark that goes on in further lines lists where the first one was inlined.
            const int found = lineOfMark(text, m_file);
            m_line = m_marked && m_line > 0 ? m_line : found;
            m_marked = true;
        } else if (text.substr(0, 2) == "/*") {
            instruction(text);
        }
    }
    [[nodiscard]] std::vector<SassLine> take() { return std::move(m_lines); }

private:
    void begin(std::string_view kernel)
    {
        m_kernel = kernel;
        m_line = 0;
        m_marked = false;
    }
    void instruction(std::string_view text)
    {
        const std::size_t close = text.find("*/");
        const std::size_t end = text.rfind(';');
        std::uint64_t offset = 0;
        if (m_kernel.empty() || close == std::string_view::npos || end == std::string_view::npos
            || end < close || !readNumber(text.substr(2, close - 2), offset, 16))
            return;
        m_lines.push_back(
            {m_kernel, offset, std::string(trimmed(text.substr(close + 2, end - close - 2))), m_line});
        m_marked = false;
    }

    std::string m_file;
    std::string m_kernel;
    int m_line = 0;
    bool m_marked = false; ///< a mark was read since the last instruction
    std::vector<SassLine> m_lines;
};

std::vector<fs::path> searchedFolders()
{
    std::vector<fs::path> folders;
    if (const char *path = std::getenv("PATH")) {
        const std::string text = path;
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find(':', begin), text.size());
            if (end > begin)
                folders.emplace_back(text.substr(begin, end - begin));
            begin = end + 1;
        }
    }
    for (const char *variable : {"CUDA_PATH", "CUDA_HOME"}) {
        if (const char *value = std::getenv(variable); value && *value)
            folders.push_back(fs::path(value) / "bin");
    }
    folders.emplace_back("/usr/local/cuda/bin");
    return folders;
}

Result<std::string> listing(const fs::path &tool, const fs::path &cubin, double limitSeconds)
{
    process::ChildOptions options;
    options.command = {tool.string()};
    if (tool.filename() == "nvdisasm")
        options.command.insert(options.command.end(), {"-g", "-c"});
    else
        options.command.push_back("-sass");
    options.command.push_back(cubin.string());
    options.limits = {{RLIMIT_CORE, 0}, {RLIMIT_FSIZE, gibibyte}, {RLIMIT_AS, 16 * gibibyte}};
    options.outputCapBytes = mostListingBytes;
    auto child = process::ChildProcess::start(options);
    if (!child)
        return tl::unexpected(child.error());
    const auto status = child->wait(process::Deadline::in(limitSeconds));
    if (!status)
        return tl::unexpected(status.error());
    if (!status->ok() || child->standardOutput().droppedBytes > 0)
        return fail(ErrorCode::Protocol,
                    "Cannot disassemble with " + tool.string() + ": "
                        + (status->ok() ? "it printed too much" : status->describe()) + ".",
                    child->standardError().text);
    return child->standardOutput().text;
}

} // namespace

std::vector<SassLine> parseSass(std::string_view text, const std::string &file)
{
    ListingReader reader(file);
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        reader.read(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return reader.take();
}

Result<fs::path> findDisassembler()
{
    for (const char *name : {"nvdisasm", "cuobjdump"}) {
        for (const fs::path &folder : searchedFolders()) {
            if (const fs::path tool = folder / name; ::access(tool.c_str(), X_OK) == 0)
                return tool;
        }
    }
    return fail(
        ErrorCode::Unavailable,
        "Cannot show SASS: neither nvdisasm nor cuobjdump is on PATH, in CUDA_PATH/bin or in "
        "/usr/local/cuda/bin. They come with the CUDA Toolkit (packages cuda-nvdisasm, cuda-cuobjdump).");
}

Result<std::vector<SassLine>> disassemble(std::span<const std::byte> cubin, const std::string &file,
                                          double limitSeconds)
{
    const auto tool = findDisassembler();
    if (!tool)
        return tl::unexpected(tool.error());
    const auto scratch = process::ScratchFolder::create();
    if (!scratch)
        return tl::unexpected(scratch.error());
    const fs::path image = scratch->path() / "candidate.cubin";
    const std::string bytes(reinterpret_cast<const char *>(cubin.data()), cubin.size());
    if (auto written = files::writeFileAtomic(image, bytes); !written)
        return tl::unexpected(written.error());
    const auto text = listing(*tool, image, limitSeconds);
    if (!text)
        return tl::unexpected(text.error());
    std::vector<SassLine> lines = parseSass(*text, file);
    const bool told = std::any_of(lines.begin(), lines.end(), [](const SassLine &l) { return l.line > 0; });
    for (SassLine &line : lines) {
        // cuobjdump does not print the line table, but CUPTI reads it.
        if (const auto found = told ? Result<int>(line.line) : sourceLine(cubin, line.kernel, line.offset))
            line.line = *found;
        else
            break;
    }
    return lines;
}

} // namespace klineage::gate::counters
