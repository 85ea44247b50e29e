// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/outline/hostcode.h"

#include "core/base/listtext.h"
#include "core/kernel/candidate.h"
#include "core/kernel/outline/hostlaunches.h"
#include "core/kernel/outline/includeline.h"
#include "core/kernel/outline/linkage.h"

#include <algorithm>
#include <array>

namespace klineage::kernel {

namespace {

using Tokens = std::span<const CodeToken>;

constexpr std::size_t mostFunctionsRead = 256; ///< for launches

/// In a function that says neither __device__ nor __global__: it runs on the host.
bool isHostWord(Tokens tokens, std::size_t i)
{
    const std::string_view word = tokens[i].text;
    const auto isNext = [&](std::size_t ahead, std::string_view sign) {
        return i + ahead < tokens.size() && tokens[i + ahead].is(sign);
    };
    const auto isOneOf = [word](auto &words) {
        return std::find(words.begin(), words.end(), word) != words.end();
    };
    constexpr std::array spaces = {"torch", "at", "c10", "thrust", "pybind11"};
    constexpr std::array ofStd = {"cout",   "cerr",    "endl",       "string", "vector",
                                  "chrono", "ostream", "unique_ptr", "mt19937"};
    constexpr std::array words = {"TORCH_CHECK", "TORCH_LIBRARY",  "PYBIND11_MODULE", "fprintf",
                                  "getenv",      "cublasHandle_t", "CUdevice"};
    if (isOneOf(words) || (isOneOf(spaces) && isNext(1, ":") && isNext(2, ":")))
        return true;
    if (isOneOf(ofStd) && ((i > 0 && tokens[i - 1].is(":")) || isNext(1, "<")))
        return true;
    // cudaMalloc, cudaStream_t
    return word.starts_with("cuda") && word.size() > 4 && word[4] >= 'A' && word[4] <= 'Z';
}

bool hasLaunch(Tokens tokens)
{
    for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
        if (tokens[i].is("<") && tokens[i + 1].is("<") && tokens[i + 2].is("<"))
            return true;
    }
    return false;
}

bool isHost(Tokens tokens, std::size_t headSize, const CodeScan &scan)
{
    const Tokens head = tokens.first(headSize);
    for (const char *word : {"__device__", "__global__", "__constant__"}) {
        if (hasWord(head, word, scan))
            return false;
    }
    if (hasWord(head, "__host__", scan) || hasLaunch(tokens))
        return true;
    for (std::size_t i = 0; i + 1 < head.size(); ++i) {
        if (head[i].is("main") && head[i + 1].is("("))
            return true;
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i].isWord() && isHostWord(tokens, i))
            return true;
    }
    return false;
}

/// Headers that device code has no use for, and that a candidate may not include.
bool isHostHeader(std::string_view name)
{
    constexpr std::array folders = {"torch/",  "ATen/",     "c10/",   "pybind11/",
                                    "thrust/", "nlohmann/", "boost/", "sys/"};
    if (std::any_of(folders.begin(), folders.end(), [&](const char *f) { return name.starts_with(f); }))
        return true;
    constexpr std::array names = {"iostream",
                                  "iomanip",
                                  "fstream",
                                  "sstream",
                                  "string",
                                  "vector",
                                  "map",
                                  "set",
                                  "unordered_map",
                                  "memory",
                                  "chrono",
                                  "random",
                                  "thread",
                                  "mutex",
                                  "stdexcept",
                                  "exception",
                                  "deque",
                                  "list",
                                  "ctime",
                                  "time.h",
                                  "unistd.h",
                                  "cublas_v2.h",
                                  "cublas.h",
                                  "cublasLt.h",
                                  "cudnn.h",
                                  "curand.h",
                                  "cusparse.h",
                                  "nvToolsExt.h",
                                  "cuda_profiler_api.h",
                                  "helper_cuda.h",
                                  "helper_functions.h",
                                  "getopt.h",
                                  "omp.h",
                                  "cstdarg",
                                  "filesystem",
                                  "regex",
                                  "queue",
                                  "stack",
                                  "unordered_set",
                                  "condition_variable",
                                  "atomic"};
    return std::find(names.begin(), names.end(), name) != names.end();
}

class Cutter
{
public:
    explicit Cutter(std::string_view code)
        : m_code(code)
        , m_scan(scanCode(code))
    {}

    DeviceSource run()
    {
        DeviceSource result;
        const HostValues globals = globalValues(m_scan);
        std::size_t read = 0;
        forEachDeclaration(m_scan.tokens, [&](const CodeDeclaration &declaration) {
            const Tokens tokens =
                Tokens(m_scan.tokens).subspan(declaration.begin, declaration.end - declaration.begin);
            if (!isHost(tokens, declaration.body - declaration.begin, m_scan))
                return;
            if (declaration.isFunction && hasLaunch(tokens) && read++ < mostFunctionsRead)
                readLaunches(tokens, globals, result.launches);
            cut(declaration);
        });
        cutIncludes();
        KernelLinkage linkage(m_code, m_scan, result.launches);
        forEachDeclaration(m_scan.tokens,
                           [&linkage](const CodeDeclaration &declaration) { linkage.visit(declaration); });
        linkage.openUnnamedSpaces();
        if (m_functions > 0)
            result.notices.push_back("Host code was cut off in " + std::to_string(m_functions)
                                     + (m_functions == 1 ? " place" : " places")
                                     + ": the gate launches by the plan.");
        if (!m_headers.empty())
            result.notices.push_back("Headers of the host were cut off: " + joined(m_headers) + '.');
        for (std::string &notice : linkage.notices())
            result.notices.push_back(std::move(notice));
        m_edits.insert(m_edits.end(), linkage.edits().begin(), linkage.edits().end());
        result.code = edited();
        return result;
    }

private:
    [[nodiscard]] std::size_t offsetOf(const CodeToken &token) const
    {
        return static_cast<std::size_t>(token.text.data() - m_code.data());
    }

    void cut(const CodeDeclaration &declaration)
    {
        const CodeToken &last = m_scan.tokens[declaration.end - 1];
        std::size_t end = offsetOf(last) + last.text.size();
        while (end < m_code.size() && (m_code[end] == '\n' || m_code[end] == '\r'))
            ++end;
        m_edits.push_back({offsetOf(m_scan.tokens[declaration.begin]), end, ""});
        ++m_functions;
    }

    void cutIncludes()
    {
        for (std::size_t begin = 0; begin < m_code.size();) {
            const std::size_t end = std::min(m_code.find('\n', begin), m_code.size() - 1);
            const std::string_view name = includeLineOf(m_code.substr(begin, end - begin)).name;
            if (isHostHeader(name)) {
                m_edits.push_back({begin, end + 1, ""});
                if (std::find(m_headers.begin(), m_headers.end(), name) == m_headers.end())
                    m_headers.emplace_back(name);
            }
            begin = end + 1;
        }
    }

    /// The code with its edits; of two that overlap the first counts.
    std::string edited()
    {
        std::stable_sort(m_edits.begin(), m_edits.end(),
                         [](const CodeEdit &a, const CodeEdit &b) { return a.begin < b.begin; });
        std::string out;
        std::size_t done = 0;
        for (const CodeEdit &edit : m_edits) {
            if (edit.begin < done)
                continue;
            out += m_code.substr(done, edit.begin - done);
            out += edit.text;
            done = edit.end;
        }
        return out + std::string(m_code.substr(done));
    }

    std::string_view m_code;
    CodeScan m_scan;
    std::vector<CodeEdit> m_edits;
    std::vector<std::string> m_headers;
    std::size_t m_functions = 0;
};

} // namespace

DeviceSource deviceSourceOf(std::string_view source, Surface surface)
{
    if (surface != Surface::Cuda || source.empty() || source.size() > maxCandidateBytes)
        return {std::string(source), {}, {}};
    return Cutter(source).run();
}

} // namespace klineage::kernel
