// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/outline/siblings.h"

#include "core/kernel/candidate.h"
#include "core/kernel/candidatetext.h"
#include "core/kernel/outline/includeline.h"

#include <algorithm>
#include <set>

namespace klineage::kernel {

namespace {

namespace fs = std::filesystem;

bool isPragmaOnce(std::string_view line)
{
    std::string words;
    for (const char c : line) {
        if (c != ' ' && c != '\t' && c != '\r')
            words += c;
    }
    return words == "#pragmaonce";
}

class Inliner
{
public:
    explicit Inliner(const fs::path &file)
    {
        std::error_code ignored;
        m_folder = fs::canonical(file.parent_path().empty() ? fs::path(".") : file.parent_path(), ignored);
        m_done.insert(fs::weakly_canonical(file, ignored));
    }

    Result<WithSiblings> run(std::string_view text)
    {
        if (Status put = append(text, m_folder, false); !put)
            return tl::unexpected(put.error());
        return std::move(m_result);
    }

private:
    Status append(std::string_view text, const fs::path &folder, bool isSibling)
    {
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
            const std::string_view line = text.substr(begin, end - begin);
            begin = end;
            const IncludeLine include = includeLineOf(line);
            const fs::path file = include.isQuoted ? siblingOf(folder, include.name) : fs::path();
            if (!file.empty()) {
                if (Status put = appendFile(file); !put)
                    return put;
                continue;
            }
            if (isSibling && isPragmaOnce(line.substr(0, line.find('\n'))))
                continue;
            m_result.text += line;
            if (m_result.text.size() > maxCandidateBytes)
                return fail(ErrorCode::InvalidInput,
                            "With the files that it includes the source has more than "
                                + std::to_string(maxCandidateBytes) + " bytes.");
        }
        return {};
    }

    /// The file that an include means; empty: none of the folder's.
    [[nodiscard]] fs::path siblingOf(const fs::path &folder, std::string_view name) const
    {
        std::error_code failed;
        const fs::path file = fs::canonical(folder / fs::path(name), failed);
        if (failed || m_folder.empty() || !fs::is_regular_file(file, failed))
            return {};
        const auto [rest, unused] = std::mismatch(m_folder.begin(), m_folder.end(), file.begin(), file.end());
        return rest == m_folder.end() ? file : fs::path();
    }

    Status appendFile(const fs::path &file)
    {
        if (!m_done.insert(file).second)
            return {};
        if (m_done.size() > maxSiblings)
            return fail(ErrorCode::InvalidInput, "The source includes more than "
                                                     + std::to_string(maxSiblings) + " files of its folder.");
        const Result<std::string> text = readCandidateText(file);
        if (!text)
            return tl::unexpected(text.error());
        const std::string name = fs::relative(file, m_folder).generic_string();
        m_result.notices.push_back("'" + name + "' was put in where it is included: a state is one file.");
        m_result.text += "// " + name + " {\n";
        if (Status put = append(*text, file.parent_path(), true); !put)
            return put;
        if (!m_result.text.ends_with('\n'))
            m_result.text += '\n';
        m_result.text += "// } " + name + '\n';
        return {};
    }

    fs::path m_folder;
    std::set<fs::path> m_done;
    WithSiblings m_result;
};

} // namespace

Result<WithSiblings> withSiblings(std::string_view text, const fs::path &file)
{
    return Inliner(file).run(text);
}

} // namespace klineage::kernel
