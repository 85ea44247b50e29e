// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <functional>
#include <memory>
#include <string>

namespace klineage::ui {

/// Where a desktop keeps secrets. Called on the GUI thread; answers come there too, now or later, at most once. No answer comes after
/// the store is gone. Errors are whole sentences without the secret.
class KeyStore
{
public:
    using Got = std::function<void(const Result<std::string> &secret)>; ///< empty: there is none
    using Done = std::function<void(const Status &)>;

    virtual ~KeyStore() = default;
    virtual void read(const std::string &entry, const Got &got) = 0;
    virtual void write(const std::string &entry, const std::string &secret, const Done &done) = 0;
    virtual void remove(const std::string &entry, const Done &done) = 0; ///< no error when there is none
};

/// The desktop's keychain (Secret Service, KWallet); one that says why it is not there, in a build without QtKeychain.
[[nodiscard]] std::unique_ptr<KeyStore> makeDesktopKeyStore();

} // namespace klineage::ui
