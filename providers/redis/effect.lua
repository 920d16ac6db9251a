-- One effect and where its delivery stands.
return answer(get('effects', request.effect), get('deliveries', request.effect))
