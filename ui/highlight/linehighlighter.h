// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/highlight/textlines.h"
#include "ui/highlight/tokenstyle.h"

#include <QStringView>

#include <memory>
#include <stop_token>
#include <string_view>

namespace klineage::ui {

/// What a text is highlighted as: one of the definitions in resources/syntax. That of a candidate has the name
/// of its surface's language, or the one that the language names.
struct Language {
    const char *definition = ""; ///< empty: none

    static const Language Plain, CudaCpp, OpenClC, PythonKernels, Ptx, Sass, LaunchPlan;
    friend bool operator==(Language a, Language b) { return std::string_view(a.definition) == b.definition; }
};
inline constexpr Language Language::Plain{""};
inline constexpr Language Language::CudaCpp{"CUDA C++"};
inline constexpr Language Language::OpenClC{"OpenCL C"};
inline constexpr Language Language::PythonKernels{"Python Kernels"};
inline constexpr Language Language::Ptx{"PTX"};
inline constexpr Language Language::Sass{"NVIDIA SASS"};
inline constexpr Language Language::LaunchPlan{"KLineage Launch Plan"};

/// By the end of the file's name; Plain when it is unknown.
[[nodiscard]] Language languageOfFile(QStringView fileName);

/// Highlights line after line with the definitions in resources/syntax (KSyntaxHighlighting). Each instance belongs to the thread
/// that made it, and so do its states. The definition is read with the first line.
class LineHighlighter
{
public:
    /// Where a line leaves off (inside a comment, inside a string …). A default one is the start of a file.
    class State
    {
    public:
        friend bool operator==(const State &a, const State &b);

    private:
        friend class LineHighlighter;
        std::shared_ptr<const void> m_state;
    };

    explicit LineHighlighter(Language language);
    ~LineHighlighter();
    LineHighlighter(const LineHighlighter &) = delete;
    LineHighlighter &operator=(const LineHighlighter &) = delete;

    /// Replaces `runs` by those of the line and returns the state for the next one. Beyond 4,000 units a line stays plain.
    State highlight(QStringView line, const State &before, LineRuns &runs);

private:
    struct Private;
    std::unique_ptr<Private> m_d;
};

/// All lines of a text at once (75,000 to 100,000 lines a second); shorter than the text when stopped.
[[nodiscard]] std::vector<LineRuns> highlightAll(const TextLines &text, Language language,
                                                 const std::stop_token &stop = {});

} // namespace klineage::ui
