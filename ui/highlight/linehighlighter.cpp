// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/highlight/linehighlighter.h"

#include "core/kernel/surfaces/surface.h"

#include <KSyntaxHighlighting/AbstractHighlighter>
#include <KSyntaxHighlighting/Definition>
#include <KSyntaxHighlighting/Format>
#include <KSyntaxHighlighting/Repository>
#include <KSyntaxHighlighting/State>
#include <KSyntaxHighlighting/Theme>

#include <optional>
#include <utility>

// Outside any namespace, as Qt asks for.
static void registerDefinitions()
{
    Q_INIT_RESOURCE(syntax);
}

namespace klineage::ui {

namespace {

namespace Ksh = KSyntaxHighlighting;

constexpr qsizetype longestLine = 4000;

/// A repository loads definitions when they are first used and is not thread-safe, so every thread has its own.
Ksh::Repository &threadRepository()
{
    thread_local const std::unique_ptr<Ksh::Repository> repository = [] {
        registerDefinitions();
        auto made = std::make_unique<Ksh::Repository>();
        made->addCustomSearchPath(QStringLiteral(":/klineage"));
        return made;
    }();
    return *repository;
}

TokenStyle tokenStyle(Ksh::Theme::TextStyle style)
{
    switch (style) {
    case Ksh::Theme::Keyword:
        return TokenStyle::Keyword;
    case Ksh::Theme::ControlFlow:
        return TokenStyle::Control;
    case Ksh::Theme::DataType:
        return TokenStyle::Type;
    case Ksh::Theme::Extension:
        return TokenStyle::Qualifier;
    case Ksh::Theme::BuiltIn:
        return TokenStyle::Builtin;
    case Ksh::Theme::Function:
        return TokenStyle::Function;
    case Ksh::Theme::Variable:
        return TokenStyle::Variable;
    case Ksh::Theme::Preprocessor:
    case Ksh::Theme::Import:
        return TokenStyle::Preprocessor;
    case Ksh::Theme::DecVal:
    case Ksh::Theme::BaseN:
    case Ksh::Theme::Float:
    case Ksh::Theme::Constant:
        return TokenStyle::Number;
    case Ksh::Theme::String:
    case Ksh::Theme::VerbatimString:
    case Ksh::Theme::SpecialString:
    case Ksh::Theme::Char:
        return TokenStyle::String;
    case Ksh::Theme::SpecialChar:
        return TokenStyle::Escape;
    case Ksh::Theme::Comment:
    case Ksh::Theme::Documentation:
    case Ksh::Theme::Annotation:
    case Ksh::Theme::CommentVar:
        return TokenStyle::Comment;
    case Ksh::Theme::Operator:
        return TokenStyle::Operator;
    case Ksh::Theme::RegionMarker:
        return TokenStyle::Label;
    case Ksh::Theme::Attribute:
        return TokenStyle::Key;
    case Ksh::Theme::Error:
    case Ksh::Theme::Alert:
        return TokenStyle::Error;
    default:
        return TokenStyle::Text;
    }
}

} // namespace

struct LineHighlighter::Private : Ksh::AbstractHighlighter {
    LineRuns *runs = nullptr;
    std::optional<Language> wanted; ///< until its definition is loaded

    void load()
    {
        if (const auto language = std::exchange(wanted, std::nullopt);
            language && !(*language == Language::Plain))
            setDefinition(threadRepository().definitionForName(QString::fromUtf8(language->definition)));
    }

    Ksh::State run(QStringView line, const Ksh::State &state) { return highlightLine(line, state); }

protected:
    void applyFormat(int offset, int length, const Ksh::Format &format) override
    {
        const TokenStyle style = tokenStyle(format.textStyle());
        if (length <= 0 || style == TokenStyle::Text)
            return;
        if (!runs->empty() && runs->back().style == style
            && runs->back().begin + runs->back().length == offset)
            runs->back().length += length;
        else
            runs->push_back({offset, length, style});
    }
};

bool operator==(const LineHighlighter::State &a, const LineHighlighter::State &b)
{
    if (!a.m_state || !b.m_state)
        return a.m_state == b.m_state;
    return *static_cast<const Ksh::State *>(a.m_state.get())
           == *static_cast<const Ksh::State *>(b.m_state.get());
}

Language languageOfFile(QStringView fileName)
{
    if (const auto surface = kernel::surfaceOfFile(fileName.toString().toStdString())) {
        const kernel::Language &language = surface->language();
        return {language.syntax ? language.syntax : language.name};
    }
    if (fileName.endsWith(u".cuh"))
        return Language::CudaCpp;
    if (fileName.endsWith(u".ptx"))
        return Language::Ptx;
    if (fileName.endsWith(u".sass"))
        return Language::Sass;
    if (fileName.endsWith(u".toml"))
        return Language::LaunchPlan;
    return Language::Plain;
}

LineHighlighter::LineHighlighter(Language language)
    : m_d(std::make_unique<Private>())
{
    m_d->wanted = language;
}

LineHighlighter::~LineHighlighter() = default;

LineHighlighter::State LineHighlighter::highlight(QStringView line, const State &before, LineRuns &runs)
{
    runs.clear();
    if (line.isEmpty() && !before.m_state)
        return before; // an editor that nobody has written in reads no definition
    m_d->load();
    if (!m_d->definition().isValid())
        return before;
    m_d->runs = &runs;
    const auto *state = static_cast<const Ksh::State *>(before.m_state.get());
    State after;
    after.m_state =
        std::make_shared<const Ksh::State>(m_d->run(line.left(longestLine), state ? *state : Ksh::State{}));
    return after;
}

std::vector<LineRuns> highlightAll(const TextLines &text, Language language, const std::stop_token &stop)
{
    LineHighlighter highlighter(language);
    LineHighlighter::State state;
    std::vector<LineRuns> all;
    all.reserve(static_cast<std::size_t>(text.count()));
    for (int i = 0; i < text.count() && !stop.stop_requested(); ++i)
        state = highlighter.highlight(text.text(i), state, all.emplace_back());
    return all;
}

} // namespace klineage::ui
