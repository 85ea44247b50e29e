// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/makeprovider.h"

#include "core/base/suggest.h"
#include "core/llm/modelsettings.h"
#include "core/llm/providers/execprovider.h"
#include "core/llm/providers/manualfolder.h"
#include "core/llm/providers/replayprovider.h"

#if KLINEAGE_HAVE_CURL
#include "core/llm/network/httpprovider.h"
#endif

namespace klineage::llm {

namespace {

using Made = Result<std::unique_ptr<Provider>>;

#if KLINEAGE_HAVE_CURL
Made makeNetwork(const std::string &name, ProviderOptions options)
{
    NetworkOptions network;
    network.baseUrl = options.baseUrl;
    network.key = std::move(options.key);
    network.paid = options.paid;
    network.notice = std::move(options.notice);
    Result<OwnModels> own = loadModels();
    if (!own)
        return tl::unexpected(own.error());
    network.ownHosts = std::move(own->ownHosts);
    network.limits.totalSeconds = options.timeoutSeconds;
    const bool isOpenAi = options.baseUrl.empty() || options.baseUrl.starts_with("https://api.openai.com/");
    std::unique_ptr<Dialect> dialect =
        name == "anthropic" ? makeAnthropicDialect() : makeOpenAiDialect(isOpenAi);
    return HttpProvider::create(std::move(dialect), std::move(network));
}
#else
Made makeNetwork(const std::string &name, const ProviderOptions &)
{
    return fail(
        ErrorCode::Unavailable,
        "The provider '" + name + "' is not there: this program was built without libcurl.",
        "Install libcurl4-openssl-dev and build again; 'manual', 'exec' and 'replay' work without it.");
}
#endif

Made makeManual(const ProviderOptions &options)
{
    if (options.desk)
        return std::make_unique<DeskProvider>(options.desk);
    std::error_code problem;
    if (options.path.empty() || !std::filesystem::is_directory(options.path, problem))
        return fail(ErrorCode::InvalidInput,
                    "The provider 'manual' needs a folder for requests and replies; '" + options.path.string()
                        + "' is none.");
    return std::make_unique<FolderProvider>(options.path);
}

Made makeExec(const ProviderOptions &options)
{
    if (options.command.empty() || options.command.front().empty())
        return fail(ErrorCode::InvalidInput, "The provider 'exec' needs a command.");
    return std::make_unique<ExecProvider>(
        ExecOptions{options.command, {}, options.timeoutSeconds, options.paid.value_or(false)});
}

} // namespace

const std::vector<std::string> &providerNames()
{
    static const std::vector<std::string> names{"anthropic", "openai", "manual", "exec", "replay"};
    return names;
}

bool needsModel(std::string_view provider)
{
    return provider == "anthropic" || provider == "openai";
}

bool isPaidUnlessSaid(const std::string &provider, const std::string &baseUrl)
{
    if (!needsModel(provider))
        return false;
#if KLINEAGE_HAVE_CURL
    if (!baseUrl.empty()) {
        const Result<OwnModels> own = loadModels();
        const Result<BaseUrl> url = parseBaseUrl(baseUrl, own ? own->ownHosts : std::vector<std::string>());
        return !url || !url->isOwn;
    }
#else
    static_cast<void>(baseUrl);
#endif
    return true;
}

bool hasNetworkProviders()
{
    return KLINEAGE_HAVE_CURL != 0;
}

Result<std::unique_ptr<Provider>> makeProvider(const std::string &name, ProviderOptions options)
{
    if (needsModel(name))
        return makeNetwork(name, std::move(options));
    if (name == "manual")
        return makeManual(options);
    if (name == "exec")
        return makeExec(options);
    if (name == "replay")
        return ReplayProvider::open(options.path);
    return fail(ErrorCode::NotFound, "There is no provider '" + name.substr(0, 64) + "'; expected one of "
                                         + quotedList(providerNames())
                                         + didYouMean(name.substr(0, 64), providerNames()));
}

} // namespace klineage::llm
