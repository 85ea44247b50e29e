// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/machine/codeloader.h"

#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/gate/counters/sass.h"
#include "core/gate/session/compilersession.h"
#include "core/gate/triton/launches.h"
#include "core/kernel/candidate.h"
#include "core/pool/gateclient.h"
#include "ui/machine/code/ptx.h"
#include "ui/style/format.h"

#include <QThreadPool>

#include <functional>
#include <list>
#include <mutex>

namespace klineage::ui {

namespace {

constexpr std::size_t keptCodes = 24;
constexpr double disassembleSeconds = 60;
constexpr int trialDigits = 8;

QThreadPool *compilePool()
{
    static QThreadPool pool;
    static const bool ready = [] {
        pool.setMaxThreadCount(2); // one may still be ending
        pool.setExpiryTimeout(-1);
        return true;
    }();
    Q_UNUSED(ready)
    return &pool;
}

QString textOf(const std::string &text)
{
    return QString::fromStdString(text);
}

/// Why it has to be made here; of PTX nothing is ever kept.
QString whyMade(const CodeRequest &request)
{
    if (request.form == CodeForm::Ptx)
        return {};
    return request.hasTrial ? CodeLoader::tr("The trial of %1 kept no machine code.").arg(request.label)
                            : CodeLoader::tr("%1 has no recorded trial.").arg(request.label);
}

SideCode none(const QStringList &sentences)
{
    SideCode side;
    QStringList said = sentences;
    said.removeAll(QString());
    side.message = said.join(QLatin1Char(' '));
    return side;
}

QString whatToDo(CodeForm form)
{
    return form == CodeForm::Ptx
               ? QString()
               : CodeLoader::tr("A trial that is gated with counters on a GPU keeps its machine code.");
}

} // namespace

/// What the jobs share: one compiler process, and what was made.
struct CodeLoader::Workshop {
    using Say = std::function<void(const QString &)>;

    SideCode make(const CodeRequest &request, const std::stop_token &stop, const Say &say);

    std::vector<std::string> command; ///< guarded by compiling

private:
    struct Made {
        std::string key;
        MachineCodePtr code;
    };

    [[nodiscard]] MachineCodePtr find(const std::string &key);
    [[nodiscard]] Result<MachineCodePtr> keep(const std::string &key, Result<MachineCode> made);
    [[nodiscard]] Result<MachineCodePtr> kept(const CodeRequest &request);
    [[nodiscard]] Result<MachineCodePtr> compiled(const CodeRequest &request,
                                                  const kernel::Candidate &candidate,
                                                  const std::stop_token &stop, const Say &say);
    [[nodiscard]] Result<gate::CompileOutput> compile(const gate::CompileRequest &request,
                                                      const std::stop_token &stop);
    [[nodiscard]] static Result<gate::Listing> listingOf(const CodeRequest &request,
                                                         const gate::CompileOutput &output, const Say &say);
    [[nodiscard]] static QString facts(const CodeRequest &request, const MachineCode &code, bool isKept,
                                       bool isSameFile);

    std::mutex m_compiling;
    std::unique_ptr<gate::CompilerSession> m_session; ///< guarded by m_compiling
    std::mutex m_keeping;
    std::list<Made> m_made; ///< most recently used first; guarded by m_keeping

    friend class CodeLoader;
};

MachineCodePtr CodeLoader::Workshop::find(const std::string &key)
{
    const std::lock_guard lock(m_keeping);
    for (auto made = m_made.begin(); made != m_made.end(); ++made) {
        if (made->key == key) {
            m_made.splice(m_made.begin(), m_made, made);
            return made->code;
        }
    }
    return nullptr;
}

Result<MachineCodePtr> CodeLoader::Workshop::keep(const std::string &key, Result<MachineCode> made)
{
    if (!made)
        return tl::unexpected(made.error());
    auto code = std::make_shared<const MachineCode>(std::move(*made));
    const std::lock_guard lock(m_keeping);
    m_made.push_front({key, code});
    if (m_made.size() > keptCodes)
        m_made.pop_back();
    return MachineCodePtr(code);
}

Result<MachineCodePtr> CodeLoader::Workshop::kept(const CodeRequest &request)
{
    const std::string key = "listing " + request.listing;
    if (MachineCodePtr found = find(key))
        return found;
    auto listing = gate::readListing(request.directory, request.listing);
    if (!listing)
        return tl::unexpected(listing.error());
    return keep(key, makeMachineCode(CodeForm::Sass, std::move(*listing)));
}

Result<gate::CompileOutput> CodeLoader::Workshop::compile(const gate::CompileRequest &request,
                                                          const std::stop_token &stop)
{
    const std::lock_guard lock(m_compiling);
    if (stop.stop_requested())
        return fail(ErrorCode::Cancelled, "The compiler was stopped.");
    if (!m_session) {
        std::vector<std::string> words = command;
        if (words.empty()) {
            const auto program = gate::findGateProgram();
            if (!program)
                return tl::unexpected(program.error());
            words = {program->string(), "compile"};
        }
        m_session = std::make_unique<gate::CompilerSession>(words, gate::CompileCache({}));
    }
    auto output = m_session->compile(request, gate::compileLimitSeconds, stop);
    if (!output)
        return tl::unexpected(output.error().error);
    return std::move(*output);
}

Result<gate::Listing> CodeLoader::Workshop::listingOf(const CodeRequest &request,
                                                      const gate::CompileOutput &output, const Say &say)
{
    const std::string file = request.file.filename().string();
    if (request.form == CodeForm::Ptx) {
        const std::string_view text(reinterpret_cast<const char *>(output.binary.data()),
                                    output.binary.size());
        auto instructions = parsePtx(text, file);
        if (!instructions)
            return tl::unexpected(instructions.error());
        return gate::Listing{output.compiler, std::move(*instructions)};
    }
    say(CodeLoader::tr("Disassembling %1…").arg(request.label));
    auto lines = gate::counters::disassemble(output.binary, file, disassembleSeconds);
    if (!lines)
        return tl::unexpected(lines.error());
    gate::Listing listing{output.compiler, {}};
    for (gate::counters::SassLine &line : *lines)
        listing.instructions.push_back(
            {std::move(line.kernel), line.offset, line.line, 0, {}, std::move(line.text)});
    return listing;
}

Result<MachineCodePtr> CodeLoader::Workshop::compiled(const CodeRequest &request,
                                                      const kernel::Candidate &candidate,
                                                      const std::stop_token &stop, const Say &say)
{
    const bool isPtx = request.form == CodeForm::Ptx;
    gate::CompileRequest wanted;
    wanted.language = kernel::toString(candidate.surface);
    wanted.source = candidate.source;
    wanted.name = request.file.filename().string();
    wanted.target = request.target.empty() ? candidate.surface.device().target({}) : request.target;
    if (isPtx)
        wanted.target.replace(0, 3, "compute_"); // of "sm_90a"
    for (const kernel::Tunable &tunable : candidate.tunables) {
        const auto used = request.tunables.find(tunable.name);
        wanted.tunables[tunable.name] = used == request.tunables.end() ? tunable.defaultValue : used->second;
    }
    auto launches = gate::describeLaunchesOf(candidate, request.file, wanted.tunables);
    if (!launches)
        return tl::unexpected(launches.error());
    wanted.launches = std::move(*launches);
    std::string key = wanted.target + ' ' + files::sha256Hex(wanted.source);
    for (const auto &[name, value] : wanted.tunables)
        key += ' ' + name + '=' + std::to_string(value);
    if (MachineCodePtr found = find(key))
        return found;
    if (!isPtx) {
        if (const auto tool = gate::counters::findDisassembler(); !tool)
            return fail(tool.error().code, tool.error().message + " PTX needs no such tool.");
    }
    say(CodeLoader::tr("Compiling %1 for %2…").arg(request.label, textOf(wanted.target)));
    const auto output = compile(wanted, stop);
    if (!output)
        return tl::unexpected(output.error());
    if (!output->ok)
        return fail(ErrorCode::InvalidInput, "It does not compile for " + wanted.target + ": "
                                                 + output->log.substr(0, output->log.find('\n')));
    auto listing = listingOf(request, *output, say);
    if (!listing)
        return tl::unexpected(listing.error());
    return keep(key, makeMachineCode(request.form, std::move(*listing)));
}

QString CodeLoader::Workshop::facts(const CodeRequest &request, const MachineCode &code, bool isKept,
                                    bool isSameFile)
{
    QStringList parts{textOf(code.compiler), textOf(request.target),
                      code.instructions == 1 ? tr("1 instruction")
                                             : tr("%1 instructions").arg(formatCount(code.instructions))};
    if (!isKept)
        parts << (code.form == CodeForm::Ptx ? tr("no samples: they are of SASS")
                                             : tr("no samples: made here, not measured"));
    else
        parts
            << (code.samples > 0 ? tr("%1 samples").arg(formatCount(code.samples)) : tr("no samples"))
            << tr("trial %1 on %2").arg(textOf(request.trial.substr(0, trialDigits)), textOf(request.device));
    if (!isSameFile)
        parts << tr("the file was changed after its trial");
    return parts.join(QStringLiteral(" · "));
}

SideCode CodeLoader::Workshop::make(const CodeRequest &request, const std::stop_token &stop, const Say &say)
{
    const auto text = files::readFile(request.file, kernel::maxCandidateBytes);
    if (!text)
        return none({textOf(text.error().message)});
    const bool isSameFile = !request.hasTrial || files::sha256Hex(*text) == request.candidate;
    const bool isKept = request.form == CodeForm::Sass && !request.listing.empty();
    Result<MachineCodePtr> code = MachineCodePtr();
    if (isKept) {
        code = kept(request);
    } else {
        const auto candidate = kernel::parseCandidate(*text, request.file.filename().string());
        if (!candidate)
            return none({textOf(candidate.error().message)});
        if (!candidate->surface.device().disassembles)
            return none({tr("%1 is written in %2.")
                             .arg(request.label, QLatin1String(candidate->surface.language().name)),
                         tr("What the compiler of %1 makes of it for the processor is not read: there is "
                            "neither SASS nor PTX.")
                             .arg(QLatin1String(candidate->surface.device().name)),
                         tr("Its compiler log is in the diff.")});
        code = compiled(request, *candidate, stop, say);
    }
    if (!code && isKept)
        return none({textOf(code.error().message)});
    if (!code)
        return none({whyMade(request), textOf(code.error().message),
                     code.error().code == ErrorCode::Unavailable ? whatToDo(request.form) : QString()});
    return {*code, facts(request, **code, isKept, isSameFile), {}};
}

CodeLoader::CodeLoader(QObject *parent)
    : QObject(parent)
    , m_workshop(std::make_shared<Workshop>())
{}

CodeLoader::~CodeLoader() = default;

void CodeLoader::setCompiler(std::vector<std::string> command)
{
    cancel();
    m_workshop = std::make_shared<Workshop>();
    m_workshop->command = std::move(command);
}

void CodeLoader::load(const CodeRequests &requests)
{
    m_isBusy = true;
    m_loading.start(compilePool(), [this, requests, workshop = m_workshop](const std::stop_token &stop,
                                                                           const JobSlot::Post &post) {
        for (const int side : {1, 0}) {
            const auto &request = requests[static_cast<std::size_t>(side)];
            if (!request || stop.stop_requested())
                continue;
            const auto say = [&](const QString &text) {
                post([this, side, text] { emit progressed(side, text); });
            };
            const SideCode made = workshop->make(*request, stop, say);
            post([this, side, made] { emit arrived(side, made); });
        }
        post([this] {
            m_isBusy = false;
            emit finished();
        });
    });
}

void CodeLoader::cancel()
{
    m_loading.cancel();
    m_isBusy = false;
}

} // namespace klineage::ui
